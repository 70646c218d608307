"""Texts of CSV with two columns: those of which the bytes tell how they are read, and others."""

PLAIN = [
    "a,b\n1,2\n",
    "a,b\n1,2",
    "a,b\n,\n , \n",
    'a,b\n"1",2\n3,""\n"x y","z"\n',
    "a,b\nÄ,ß€\n😀,\n",
]
NOT_PLAIN = [
    "a,b\n1\n2,3,4\n",
    "a,b\n1,2\n3\n",
    "a,b\n1,2,3\n",
    "a,b\n\n1,2\n",
    "a,b\r\n1,2\r\n",
    'a,b\n"1,2\n',
    'a,b\n"1,2",\n',
    'a,b\n"1"x,2\n',
    'a,b\nx"1",2\n',
    'a,b\n"1""2",3\n',
    'a,b\n"1\n2,3"\n',
    "a,b\n1\\,2\n",
    "a,b\n1\0,2\n",
    "a,b\n\ufffd,2\n",
]
