"""How a local session's Java logs: to a file of the session, and to standard error only what ends the process."""

from __future__ import annotations

from pathlib import Path

from privrisk_spark.runs.verbosity import ASKED
from privrisk_spark.storage.documents import write_text
from privrisk_spark.storage.local_directory import LocalDirectory

__all__ = ["write_configuration"]


def write_configuration(directory: LocalDirectory) -> Path:
    """Write how Java is to log, and return the file; warnings go to standard error, too, if somebody asked for them.

    Parameters
    ----------
    directory : LocalDirectory
        Whose log Java is to write.
    """
    path = directory.paths[0] / "log4j2.properties"
    write_text(path, _LOGGING.format(log=directory.log, console="warn" if ASKED.spark else "fatal"))
    return path


_LOGGING = """\
status = fatal
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
rootLogger.appenderRef.console.ref = console
rootLogger.appenderRef.console.level = {console}
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} Spark %p %c{{1}}: %m%n%ex
"""
