"""The findings of `apportion doctor` for broken set-ups, without starting Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apportion import ApportionError, doctor
from apportion.doctor import Finding, properties

from .conftest import JAR, Machine

EXTENSION = "io.apportion.ApportionExtension"
DELTA = "io.delta.sql.DeltaSparkSessionExtension"
COMET = "org.apache.comet.CometSparkSessionExtensions"
KYUUBI = "org.apache.kyuubi.sql.KyuubiSparkSQLExtension"


def findings(machine: Machine, verdict: str) -> list[Finding]:
    return [finding for finding in doctor.examine() if finding.verdict == verdict]


def test_a_setup_without_settings_has_no_problems(machine: Machine) -> None:
    found = doctor.examine()
    assert {finding.verdict for finding in found} == {"ok"}
    assert [finding.check for finding in found] == [
        "Python", "Java", "Spark", "Jar", "Extension", "Adaptive execution", "Settings",
    ]  # fmt: skip
    assert "--jars $(apportion jar) --conf spark.sql.extensions=" in found[4].advice


def test_a_setup_for_spark_submit_has_no_problems(machine: Machine) -> None:
    machine.defaults(
        f"spark.jars {machine.folder}/ours/{JAR}",
        f"spark.sql.extensions={DELTA}, {EXTENSION}",
        "spark.apportion.dataVolumePerTask: 64m",
        "# spark.sql.adaptive.enabled false",
    )
    found = {finding.check: finding for finding in doctor.examine()}
    assert {finding.verdict for finding in found.values()} == {"ok"}
    assert f"{machine.folder}/ours/{JAR}" in found["Jar given"].looked_at
    assert "spark-defaults.conf, line 3" in found["Settings"].looked_at
    assert "Delta Lake" in found["Other extensions"].advice


def test_spark_3_5_accepts_older_java(machine: Machine) -> None:
    spark_35_on_java_8(machine)
    assert {finding.verdict for finding in doctor.examine()} == {"ok"}


def no_java(machine: Machine) -> None:
    machine.java(None)


def java_home_without_java(machine: Machine) -> None:
    machine.set("JAVA_HOME", str(machine.folder / "gone"))


def java_too_old(machine: Machine) -> None:
    machine.java("11.0.27", "jdk/bin")
    machine.set("JAVA_HOME", str(machine.folder / "jdk"))


def java_8(machine: Machine) -> None:
    machine.java("1.8.0_392")


def spark_35_on_java_8(machine: Machine) -> None:
    machine.java("1.8.0_392")
    machine.spark("3.5.9", "2.12")
    machine.jars("apportion-spark-3.5_2.12-0.1.0.jar")


def java_7(machine: Machine) -> None:
    spark_35_on_java_8(machine)
    machine.java("1.7.0_80")


def pyspark_missing(machine: Machine) -> None:
    machine.without_pyspark()


def no_spark_in_spark_home(machine: Machine) -> None:
    machine.set("SPARK_HOME", str(machine.folder / "empty"))


def pyspark_of_another_spark(machine: Machine) -> None:
    machine.spark("4.1.3", pyspark="4.2.1")


def unsupported_spark(machine: Machine) -> None:
    machine.spark("3.4.1", "2.12")


def jars_were_not_built(machine: Machine) -> None:
    machine.jars()


def jar_of_another_spark(machine: Machine) -> None:
    other = machine.file("lib/apportion-spark-3.5_2.13-0.1.0.jar")
    machine.submit(f"--jars {other} --conf spark.sql.extensions={EXTENSION}")


def jar_of_another_scala(machine: Machine) -> None:
    other = machine.file("lib/apportion-spark-4.2_2.12-0.1.0.jar")
    machine.defaults(f"spark.jars file://{other}", f"spark.sql.extensions {EXTENSION}")


def jar_that_is_gone(machine: Machine) -> None:
    machine.submit(f"--jars=/gone/{JAR} -c spark.sql.extensions={EXTENSION}")


def jar_with_a_wrong_url(machine: Machine) -> None:
    machine.submit(f"--jars=file://[gone/{JAR} -c spark.sql.extensions={EXTENSION}")


def two_versions_of_the_jar(machine: Machine) -> None:
    new = machine.file("lib/apportion-spark-4.2_2.13-0.2.0.jar")
    machine.submit(f"--jars {new} --conf spark.sql.extensions={EXTENSION}")


def a_version_among_sparks_own_jars(machine: Machine) -> None:
    machine.file("spark/jars/apportion-spark-4.2_2.13-0.0.9.jar")
    machine.defaults(f"spark.sql.extensions {EXTENSION}")


def a_version_from_maven(machine: Machine) -> None:
    machine.submit(
        f"-c spark.sql.extensions={EXTENSION} "
        "--packages io.apportion:apportion-spark-4.2_2.13:0.3.0"
    )


def jar_without_the_extension(machine: Machine) -> None:
    machine.defaults(
        f"spark.jars {machine.folder}/ours/{JAR}", f"spark.sql.extensions {DELTA},{KYUUBI}"
    )


def settings_without_the_extension(machine: Machine) -> None:
    machine.defaults("spark.apportion.mode active")


def extension_misspelt(machine: Machine) -> None:
    machine.defaults(f"spark.sql.extensions {DELTA},io.apportion.ApportionExtensions")


def extension_named_twice(machine: Machine) -> None:
    machine.defaults(f"spark.sql.extensions {EXTENSION},{EXTENSION}")


def adaptive_execution_off(machine: Machine) -> None:
    machine.defaults("spark.sql.adaptive.enabled  FALSE")


def adaptive_execution_off_in_a_file_that_is_named(machine: Machine) -> None:
    file = machine.file("site.conf", "spark.sql.adaptive.enabled=false")
    machine.submit(f"--properties-file {file}")


def unknown_setting(machine: Machine) -> None:
    machine.submit(f"-c spark.sql.extensions={EXTENSION} -c spark.apportion.dataVolumPerTask=64MB")


def setting_in_the_wrong_case(machine: Machine) -> None:
    machine.defaults(f"spark.sql.extensions={EXTENSION}", "spark.Apportion.mode=active")


def wrong_value(machine: Machine) -> None:
    machine.defaults(f"spark.sql.extensions={EXTENSION}", "spark.apportion.broadcastRatio=1.5")


def wrong_value_of_an_internal_setting(machine: Machine) -> None:
    machine.defaults(f"spark.sql.extensions={EXTENSION}", "spark.apportion.resources.cooldown=x")


def bounds_without_a_power_of_two(machine: Machine) -> None:
    machine.defaults(
        f"spark.sql.extensions={EXTENSION}",
        "spark.apportion.minParallelism=5",
        "spark.apportion.maxParallelism=7",
    )


def arguments_without_pyspark_shell(machine: Machine) -> None:
    machine.set("PYSPARK_SUBMIT_ARGS", "--master local[2]")


JAVA = "need Java 17 or newer: install it, and set JAVA_HOME to its folder"


@pytest.mark.parametrize(
    ("break_it", "check", "looked_at", "advice"),
    [
        (no_java, "Java", "java on PATH: not found", JAVA),
        (java_home_without_java, "Java", "/gone: has no bin/java", JAVA),
        (java_too_old, "Java", "/jdk: Java 11.0.27", JAVA),
        (java_8, "Java", "java on PATH: Java 1.8.0_392", JAVA),
        (java_7, "Java", "java on PATH: Java 1.7.0_80", "need Java 8 or newer"),
        (pyspark_missing, "Spark", "SPARK_HOME is not set", "pip install 'apportion[spark]'"),
        (no_spark_in_spark_home, "Spark", "/empty", "set SPARK_HOME to a folder with Spark in it"),
        (
            pyspark_of_another_spark,
            "Spark",
            "package pyspark: 4.2.1",
            "pip install 'pyspark==4.1.*', or unset SPARK_HOME",
        ),
        (
            unsupported_spark,
            "Jar",
            "Spark 3.4 (Scala 2.12)",
            "Spark 4.0 (Scala 2.13), Spark 3.5 (Scala 2.13). Install one of these",
        ),
        (jars_were_not_built, "Jar", "Spark 4.2", "build it with: make jars"),
        (
            jar_of_another_spark,
            "Jar given",
            "lib/apportion-spark-3.5_2.13-0.1.0.jar (spark.jars)",
            "for Spark 3.5 (Scala 2.13), but Spark 4.2 (Scala 2.13) would run: use {ours}",
        ),
        (
            jar_of_another_scala,
            "Jar given",
            "lib/apportion-spark-4.2_2.12-0.1.0.jar (spark.jars)",
            "for Spark 4.2 (Scala 2.12), but Spark 4.2 (Scala 2.13) would run: use {ours}",
        ),
        (jar_that_is_gone, "Jar given", f"/gone/{JAR}", "this file does not exist: use {ours}"),
        (jar_with_a_wrong_url, "Jar given", "//[gone/", "this file does not exist: use {ours}"),
        (
            two_versions_of_the_jar,
            "Versions of the jar",
            "0.2.0.jar (spark.jars); 0.1.0: {ours} (this package)",
            "keep one version, and remove the others",
        ),
        (
            a_version_among_sparks_own_jars,
            "Versions of the jar",
            "0.0.9.jar (Spark's own jars); 0.1.0: {ours} (this package)",
            "keep one version",
        ),
        (
            a_version_from_maven,
            "Versions of the jar",
            "io.apportion:apportion-spark-4.2_2.13:0.3.0 (spark.jars.packages); 0.1.0: ",
            "keep one version",
        ),
        (
            jar_without_the_extension,
            "Extension",
            f"spark.sql.extensions={DELTA},{KYUUBI} ",
            f"Use --conf spark.sql.extensions={EXTENSION},{DELTA},{KYUUBI}",
        ),
        (
            settings_without_the_extension,
            "Extension",
            "spark.sql.extensions is not set",
            f"it makes no decisions. Use --conf spark.sql.extensions={EXTENSION}",
        ),
        (
            extension_misspelt,
            "Extension",
            "io.apportion.ApportionExtensions (",
            f"Use --conf spark.sql.extensions={EXTENSION},{DELTA}",
        ),
        (extension_named_twice, "Extension", f"{EXTENSION},{EXTENSION} (", "named twice"),
        (
            adaptive_execution_off,
            "Adaptive execution",
            "spark.sql.adaptive.enabled=FALSE ({folder}/spark/conf/spark-defaults.conf, line 1)",
            "remove the setting",
        ),
        (
            adaptive_execution_off_in_a_file_that_is_named,
            "Adaptive execution",
            "spark.sql.adaptive.enabled=false ({folder}/site.conf, line 1)",
            "remove the setting",
        ),
        (
            unknown_setting,
            "Settings",
            "spark.apportion.dataVolumPerTask=64MB (PYSPARK_SUBMIT_ARGS, -c)",
            "Did you mean spark.apportion.dataVolumePerTask?",
        ),
        (
            setting_in_the_wrong_case,
            "Settings",
            "spark.Apportion.mode=active",
            "Did you mean spark.apportion.mode?",
        ),
        (
            wrong_value,
            "Settings",
            "spark.apportion.broadcastRatio=1.5 ({folder}/spark/conf/spark-defaults.conf, line 2)",
            "allowed is above 0.0 and below 1.0",
        ),
        (
            wrong_value_of_an_internal_setting,
            "Settings",
            "spark.apportion.resources.cooldown=x",
            "allowed is 0 seconds or more",
        ),
        (
            bounds_without_a_power_of_two,
            "Settings",
            "spark.apportion.minParallelism=5",
            "Lower the first to 4 or less, or raise the second to 8 or more",
        ),
        (
            arguments_without_pyspark_shell,
            "Submit arguments",
            "PYSPARK_SUBMIT_ARGS does not end with pyspark-shell",
            "put pyspark-shell at the end",
        ),
    ],
)  # fmt: skip
def test_a_wrong_setup_has_one_problem_with_advice(
    machine: Machine, break_it: Callable[[Machine], None], check: str, looked_at: str, advice: str
) -> None:
    break_it(machine)
    (finding,) = findings(machine, "problem")
    names = {"folder": machine.folder, "ours": machine.folder / "ours" / JAR}
    assert finding.check == check
    assert looked_at.format(**names) in finding.looked_at
    assert advice.format(**names) in finding.advice
    assert findings(machine, "warning") == []


def test_properties_files_are_read_as_java_reads_them(machine: Machine) -> None:
    machine.defaults(
        f"spark.sql.extensions  {DELTA},\\",
        f"    {EXTENSION}",
        "spark.jars=hdfs\\://host/a.jar",
        "  ! spark.apportion.mode=observe",
        "spark.flag",
        "spark.caf\\u00e9 : \\u00fc\\\\ ",
    )
    file = machine.folder / "spark/conf/spark-defaults.conf"
    assert properties.read(file) == [
        ("spark.sql.extensions", f"{DELTA},{EXTENSION}", 1),
        ("spark.jars", "hdfs://host/a.jar", 3),
        ("spark.flag", "", 5),
        ("spark.café", "ü\\", 6),
    ]
    assert {finding.verdict for finding in doctor.examine()} == {"ok"}


@pytest.mark.parametrize(
    ("manager", "service"),
    [
        ("org.apache.spark.shuffle.celeborn.SparkShuffleManager", "Apache Celeborn: "),
        ("org.apache.spark.shuffle.RssShuffleManager", "Apache Uniffle or Uber's"),
        ("com.example.Manager", "a shuffle manager that the doctor does not know: "),
    ],
)
def test_a_remote_shuffle_service_is_named_with_its_restrictions(
    machine: Machine, manager: str, service: str
) -> None:
    (found,) = (each for each in machine.examine(**{"spark.shuffle.manager": manager})
                if each.check == "Shuffle manager")  # fmt: skip
    assert found.advice.startswith(service)
    assert "without adaptive writes, splits and local reads" in found.advice


def test_secrets_are_never_shown(machine: Machine) -> None:
    machine.set("PYSPARK_SUBMIT_ARGS", "--conf spark.hadoop.fs.s3a.secret.key=HIDE-ME")
    machine.defaults(
        "spark.redaction.regex corporate",
        "spark.apportion.corporateId HIDE-ME",
        "spark.apportion.password HIDE-ME",
        "spark.jars https://user:HIDE-ME@host/apportion-spark-3.5_2.13-0.1.0.jar",
    )
    found = doctor.examine({"spark.apportion.token": "HIDE-ME"})
    assert sum("redacted" in each.looked_at for each in found) == 3
    assert "HIDE-ME" not in str(found)


def kyuubi_that_chooses_subpartitions(machine: Machine) -> None:
    machine.defaults(
        f"spark.sql.extensions {EXTENSION},{KYUUBI}",
        "spark.sql.optimizer.dynamicShufflePartitions true",
    )


def coalescing_that_is_set(machine: Machine) -> None:
    machine.defaults(
        "spark.sql.adaptive.coalescePartitions.minPartitionSize 4m",
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum 512",
    )


def coalescing_off(machine: Machine) -> None:
    machine.defaults("spark.sql.adaptive.coalescePartitions.enabled false")


def apportion_off(machine: Machine) -> None:
    machine.defaults(f"spark.sql.extensions {EXTENSION}", "spark.apportion.enabled false")


def apportion_that_observes(machine: Machine) -> None:
    machine.defaults(f"spark.sql.extensions {EXTENSION}", "spark.apportion.mode observe")


def rules_that_are_off(machine: Machine) -> None:
    rules = "spark.apportion.rules.disabled ScanTasks,LocalReads"
    machine.defaults(f"spark.sql.extensions {EXTENSION}", rules)


def no_python_for_tasks(machine: Machine) -> None:
    machine.set("PYSPARK_PYTHON", "/gone/python3")


def another_python_for_tasks(machine: Machine) -> None:
    program = machine.folder / "bin" / "python3"
    program.write_text("#!/bin/sh\necho 3.9\n")
    program.chmod(0o755)
    machine.set("PYSPARK_PYTHON", "python3")


@pytest.mark.parametrize(
    ("set_up", "check", "advice"),
    [
        (kyuubi_that_chooses_subpartitions, "Other extensions", "set it to false"),
        (coalescing_that_is_set, "Spark's coalescing", "no effect while Apportion is on"),
        (coalescing_off, "Spark's coalescing", "as Spark makes them"),
        (apportion_off, "Adaptive execution", "Apportion is switched off"),
        (apportion_that_observes, "Mode", "only records decisions"),
        (rules_that_are_off, "Rules", "switched off: ScanTasks, LocalReads"),
        (no_python_for_tasks, "Python", "/gone/python3 cannot be started"),
        (another_python_for_tasks, "Python", "python3 is Python 3.9, so Python functions"),
    ],
)  # fmt: skip
def test_a_risky_setup_has_one_warning_with_advice(
    machine: Machine, set_up: Callable[[Machine], None], check: str, advice: str
) -> None:
    set_up(machine)
    (finding,) = findings(machine, "warning")
    assert finding.check == check
    assert advice in finding.advice
    assert findings(machine, "problem") == []


def test_coalescing_settings_that_apportion_reads_have_no_warning(machine: Machine) -> None:
    coalescing_that_is_set(machine)
    (finding,) = findings(machine, "warning")
    assert "initialPartitionNum" not in finding.looked_at


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (f"{EXTENSION},{COMET}", "Comet writes its shuffles itself"),
        (f"org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,{EXTENSION}", "keeps"),
        (f"{KYUUBI},{EXTENSION}", "do not change shuffle reads"),
        (f"com.example.Own,{EXTENSION}", "does not know this extension"),
    ],
)
def test_other_extensions_have_advice(machine: Machine, name: str, advice: str) -> None:
    (finding,) = (
        each
        for each in doctor.examine({"spark.sql.extensions": name})
        if each.check == "Other extensions"
    )
    assert finding.verdict == "ok"
    assert advice in finding.advice


def test_the_extensions_of_plugins_have_advice(machine: Machine) -> None:
    (finding,) = (
        each
        for each in doctor.examine({"spark.plugins": "org.apache.gluten.GlutenPlugin"})
        if each.check == "Other extensions"
    )
    assert "Gluten replaces Spark's operators" in finding.advice


def test_the_source_with_the_highest_priority_counts(machine: Machine) -> None:
    machine.defaults(
        "spark.apportion.mode active",
        "spark.apportion.ranges even",
        "spark.apportion.ranges balanced",
        "spark.apportion.rounding exact",
    )
    machine.submit(f"-c spark.apportion.rounding=waves -c spark.sql.extensions={EXTENSION}")
    (finding,) = (
        each
        for each in doctor.examine({"spark.apportion.mode": "reactive"})
        if each.check == "Settings"
    )
    assert finding.verdict == "ok"
    for setting in (
        "mode=reactive (--conf)",
        "rounding=waves (PYSPARK_SUBMIT_ARGS, -c)",
        f"ranges=balanced ({machine.folder}/spark/conf/spark-defaults.conf, line 3)",
    ):
        assert setting in finding.looked_at
    assert "mode=active" not in finding.looked_at


def test_the_last_of_repeated_submit_arguments_counts(machine: Machine) -> None:
    right = machine.folder / "ours" / JAR
    machine.submit(
        f"--jars /old/{JAR} --jars {right} -c spark.jars=/gone/{JAR} "
        f"-c spark.apportion.mode=observe -c spark.apportion.mode=auto "
        f"-c spark.sql.extensions={EXTENSION}"
    )
    found = doctor.examine()
    assert {finding.verdict for finding in found} == {"ok"}
    (given,) = (finding for finding in found if finding.check == "Jar given")
    assert str(right) in given.looked_at


def test_unreadable_submit_arguments_raise(machine: Machine) -> None:
    machine.set("PYSPARK_SUBMIT_ARGS", "--name 'unclosed pyspark-shell")
    with pytest.raises(ApportionError, match=r"PYSPARK_SUBMIT_ARGS is not .* No closing quotation"):
        doctor.examine()
