"""Every byte that does not travel through Spark: small files with compare-and-swap, and parts that tasks share.

``locations`` says where a place is and whether two spellings are one place; ``store`` is the protocol of small files,
with ``local`` for file systems and ``objects`` for S3, Azure and Google; ``parts`` holds what tasks hand to each
other: files that never change under names nobody else has. Of this machine ``directories`` and ``documents`` are what
is kept, ``temporary`` and ``local_directory`` what is not, ``locks`` and ``permissions`` who may; ``table_files``
and ``lakes`` are the files of tables. No other package but ``cli`` touches a disk.
"""
