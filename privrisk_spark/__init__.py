"""Privacy risk of large tables and anonymized releases, on Apache Spark."""

__version__ = "0.1.0"
