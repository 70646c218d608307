"""Sharing in a social network (Fouad 2012, chapter 7): to whom may a member show which attribute at which level.

``graph`` holds who is whose friend, ``diffusion`` what leaks to whom (§7.3), ``trust`` how much is trusted and what a
loss then weighs (§7.4), ``access`` and ``access_tasks`` the access-control problems (§7.4), in one place and added up
over tasks, and ``modified_aggregate`` what a user shows another one (§7.5), searched by ``level_search``.
"""
