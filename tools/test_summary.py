"""Prints one line about a ctest run: how many tests passed, failed and were skipped, and why they were.

    ctest --preset release --output-junit FILE
    python3 tools/test_summary.py FILE RESULTS

RESULTS is the folder in which test programs leave the results of their cases, build/release/test_results; what left none
there counts as one test. Exit status: 1 where a test failed, did not run or was skipped without a reason. The reason is
what the test says to GTEST_SKIP().
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

REASON = re.compile(r":\d+\n(.+)")  # behind file and line


def cases(path):
    return xml.etree.ElementTree.parse(path).iter("testcase")


def main():
    results = pathlib.Path(sys.argv[2])
    passed = failed = 0
    reasons = collections.Counter()
    for test in cases(sys.argv[1]):
        name = test.get("name")
        is_good = test.get("status") == "run"
        file = results / (name.replace("/", "-") + ".xml")
        if not file.exists():  # no program of cases, or one that crashed
            passed, failed = (passed + 1, failed) if is_good else (passed, failed + 1)
            continue
        failed_before = failed
        for case in cases(file):
            skipped = case.find("skipped")
            if case.find("failure") is not None:
                failed += 1
            elif skipped is None:
                passed += 1
            elif said := REASON.search(skipped.get("message", "")):
                reasons[said[1].strip()] += 1
            else:  # as gtest calls the cases of a suite whose SetUpTestSuite() failed
                print(f"{name}: {case.get('name')}: skipped without a reason", file=sys.stderr)
                failed += 1
        is_skipped = "SKIP" in (test.find("skipped").get("message", "") if test.find("skipped") is not None else "")
        if not is_good and not is_skipped and failed == failed_before:
            print(f"{name}: failed beside its cases", file=sys.stderr)
            failed += 1
    parts = [f"{passed} passed"] + ([f"{failed} failed"] if failed else []) + [f"{sum(reasons.values())} skipped"]
    why = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
    print(", ".join(parts) + (f": {why}" if why else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
