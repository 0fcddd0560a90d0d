from __future__ import annotations

import pytest

from analysis.errors import cause

STACK = """\
WARNING: Using incubator modules: jdk.incubator.vector
WARN Utils: Your hostname resolves to a loopback address
java.io.IOException: a warning's
\tat some.Place(Place.java:1)

Exception in thread "main" java.lang.ExceptionInInitializerError
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
Caused by: java.net.UnknownHostException: nowhere: nowhere: Name or service not known
\tat java.base/java.net.InetAddress.getLocalHost(InetAddress.java:1671)
\t... 10 more
Caused by: java.net.UnknownHostException: nowhere: Name or service not known
\tat java.base/java.net.Inet6AddressImpl.lookupAllHostAddr(Native Method)
\t... 17 more
ERROR Later: and of no interest
java.lang.IllegalStateException: later
\tat some.Place(Place.java:2)
"""


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (STACK, "java.net.UnknownHostException: nowhere: Name or service not known"),
        ("out of luck\n", "out of luck"),
        ("", "it said nothing"),
        ("WARN Utils: nothing else\n\n", "it said nothing"),
        (
            "ERROR StandaloneSchedulerBackend: All masters\n\nWARN x: y\n",
            "ERROR StandaloneSchedulerBackend: All masters",
        ),
        ("An error occurred while calling o1.x.\n: a.B: it broke\n\tat a.B.c(B.java:1)", "a.B: it broke"),
    ],
)
def test_the_cause_is_the_bottom_of_the_first_stack_that_is_no_warnings(said: str, found: str) -> None:
    assert cause(said) == found
