"""HDFS and YARN on loopback: Hadoop's mini cluster in a Java process of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from connector_packages import HADOOP
from connectors import find_jars
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

# A class of Hadoop's tests, and what only a server needs.
_NOT_FOR_CLIENTS = {"net.topology.node.switch.mapping.impl"}

_YARN = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
    "yarn.nodemanager.resource.memory-mb": "8192",
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
}


@dataclass(frozen=True)
class Hadoop:
    """A cluster that runs.

    Attributes
    ----------
    uri : str
        Of the name node.
    configuration : Path
        Directory for ``HADOOP_CONF_DIR``.
    """

    uri: str
    configuration: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables that name the cluster to Hadoop's clients."""
        place = str(self.configuration)
        return {"HADOOP_CONF_DIR": place, "YARN_CONF_DIR": place, "HADOOP_USER_NAME": getpass.getuser()}


@contextmanager
def cluster(directory: Path, *, yarn: bool = False) -> Iterator[Hadoop]:
    """Start a name node and a data node, and YARN if it is asked for; stop them at the end."""
    jars = [*find_jars(HADOOP), *Path(pyspark.__file__).parent.joinpath("jars").glob("*.jar")]
    java = shutil.which("java")
    assert java
    with (directory / "hadoop.log").open("w") as log:
        port = launch_gateway(
            jarpath=next(str(jar) for jar in jars if jar.name.startswith("py4j")),
            classpath=os.pathsep.join(map(str, jars)),
            javaopts=["-Xmx768m", f"-Dtest.build.data={directory}", f"-Dhadoop.log.dir={directory}/logs"],
            redirect_stdout=log,
            redirect_stderr=log,
            java_path=java,
            die_on_exit=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        stops = []
        try:
            hadoop = gateway.jvm.org.apache.hadoop
            asked = hadoop.conf.Configuration()
            asked.set("hdfs.minidfs.basedir", str(directory / "dfs"))
            dfs = hadoop.hdfs.MiniDFSCluster.Builder(asked).numDataNodes(1).build()
            stops.append(dfs.shutdown)
            dfs.waitClusterUp()
            uri = dfs.getURI().toString()
            configuration = dfs.getConfiguration(0)
            if yarn:
                of_yarn = hadoop.yarn.conf.YarnConfiguration(configuration)
                for key, value in _YARN.items():
                    of_yarn.set(key, value)
                resources = hadoop.yarn.server.MiniYARNCluster("privrisk", 1, 1, 1)
                resources.init(of_yarn)
                resources.start()
                stops.insert(0, resources.stop)
                configuration = resources.getConfig()
            place = directory / "conf"
            place.mkdir()
            _write(configuration, place, {"fs.defaultFS": uri})
            yield Hadoop(uri, place)
        finally:
            for stop in stops:
                stop()
            gateway.shutdown()


def _write(configuration: Any, place: Path, more: Mapping[str, str]) -> None:
    """Write a cluster's configuration as its clients read it."""
    document = ET.Element("configuration")
    found = {entry.getKey(): entry.getValue() for entry in configuration.iterator()}
    for key, value in {**found, **more}.items():
        if key not in _NOT_FOR_CLIENTS:
            element = ET.SubElement(document, "property")
            ET.SubElement(element, "name").text = key
            ET.SubElement(element, "value").text = value
    for name in ("core-site.xml", "hdfs-site.xml", "yarn-site.xml"):
        ET.ElementTree(document).write(place / name)
