"""The public interface: DataFrames and policies in, frozen results out.

Every function takes a DataFrame first, or None for the table the policy names, and the policy second. No function
prints, ends the process, or raises anything but the errors of :mod:`privrisk_spark.errors`; none stops or replaces a
Spark session. Spark is imported when a session is needed, so policies can be written where there is none.
"""
