"""Every byte that does not travel through Spark: small files with compare-and-swap, and parts that tasks share.

``locations`` says where a place is and whether two spellings are one place; ``store`` is the protocol of small files,
with ``local`` for file systems and ``objects`` for S3, Azure and Google; ``directories`` holds what tasks hand to each
other: files that never change under names nobody else has.
"""
