"""Prints one line about a ctest run: how many tests passed, failed and were skipped, and why they were.

    ctest --preset release --output-junit FILE
    python3 tools/test_summary.py FILE

Exit status: 1 where a test failed, did not run or was skipped without a reason. The reason is what the test says to
GTEST_SKIP().
"""

import collections
import re
import sys
import xml.etree.ElementTree

REASON = re.compile(r"\bSkipped\n(.+)")


def main():
    passed = failed = 0
    reasons = collections.Counter()
    for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
        if case.get("status") == "run":
            passed += 1
        elif case.find("skipped") is not None and "SKIP" in case.find("skipped").get("message", ""):
            said = REASON.search(case.findtext("system-out") or "")
            if said:
                reasons[said[1].strip()] += 1
            else:  # as gtest calls the tests of a suite whose SetUpTestSuite() failed
                print(f"{case.get('name')}: skipped without a reason", file=sys.stderr)
                failed += 1
        else:  # failed, or could not be started
            failed += 1
    parts = [f"{passed} passed"] + ([f"{failed} failed"] if failed else []) + [f"{sum(reasons.values())} skipped"]
    why = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
    print(", ".join(parts) + (f": {why}" if why else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
