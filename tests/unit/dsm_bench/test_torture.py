# SPDX-License-Identifier: GPL-2.0
"""dsm_torture here: CPUs of one machine lose nothing, and a write that is lost, torn or seen too late is noticed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import torture
from lab.errors import Malformed
from lab.patience import wait_for
from lab.pipeline.paths import REPO
from tests.unit.dsm_bench.changed_program import changed, run
from tests.unit.dsm_bench.played_privcmd import privcmd
from tests.unit.left_to_soak import rest_in_soak

SOURCE = REPO / "benchmarks" / "programs" / "dsm_torture.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torture")
    goal = folder / "dsm_torture"
    subprocess.run(["make", "-s", "-C", REPO / "benchmarks", f"O={folder}", goal], check=True)
    return goal


def cpus(threads: int) -> str:
    own = sorted(os.sched_getaffinity(0))
    return f"--cpus={','.join(map(str, (own * threads)[:threads]))}"


def test_nothing_is_lost_on_one_machine(program: Path) -> None:
    """Every operation, four threads, and pages that are few and many."""
    for pages in (2, 3, 8):
        done = run(program, f"{cpus(4)} --pages={pages} --operations=768 --seed={pages} --pressure=8")
        assert done.returncode == 0, done.stdout + done.stderr
        found = torture.parse(done.stdout)
        assert found.turns == 3 and found.wrong == 0
        assert [each.operation for each in found.operations] == list(torture.OPERATIONS[:-2])
        assert sum(each.count for each in found.operations) == 4 * 768
        assert all(each.count > 150 for each in found.operations)


def test_the_seed_decides(program: Path) -> None:
    """The same operations with the same seed, and others with another one."""
    words = f"{cpus(2)} --operations=1024 --pressure=8"

    def counts(seed: int) -> list[int]:
        return [each.count for each in torture.parse(run(program, f"{words} --seed={seed}").stdout).operations]

    assert counts(1) == counts(1) != counts(2)


def test_pages_that_migrate(program: Path) -> None:
    done = run(program, f"{cpus(2)} --operations=512 --nodes=0,0 --only=migrate,stretch,write,read")
    if "move_pages: Operation not permitted" in done.stderr:
        pytest.skip("this process must not move pages that are mapped twice: CAP_SYS_NICE")
    assert done.returncode == 0 and torture.parse(done.stdout).operations[-1].operation == "migrate", done


CALLS = "--hypercalls --only=hypercall,stretch,drop,pipe"


@pytest.mark.parametrize("faults", [False, True])
def test_hypercalls(program: Path, tmp_path: Path, faults: bool) -> None:
    """What Xen writes to pages that others drop meanwhile is what it wrote at first, if need be when it is asked again."""
    words = f"{cpus(2)} --pages=3 --operations=2560 {CALLS}"
    done = run(program, words, LD_PRELOAD=privcmd(tmp_path, faults=faults))
    assert done.returncode == 0, done.stdout + done.stderr
    found = torture.parse(done.stdout)
    last = found.operations[-1]
    assert last.operation == "hypercall" and last.count > 1000 and last.wrong == 0
    # Half of the calls, of either thread.
    assert found.again > 450 if faults else found.again == 0


@pytest.mark.parametrize(
    ("wrong", "by"),
    [
        (1, {"answer"}), (2, {"answer"}), (3, {"answer"}), (4, {"stretch", "stretch, of another one"}), (5, {"refused"}),
        (6, {"stretch", "stretch, of another one"}), (9, {"answer"}),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_noticed(program: Path, tmp_path: Path, wrong: int, by: set[str]) -> None:
    words = f"{cpus(2)} --pages=2 --operations=2560 {CALLS}"
    done = run(program, words, LD_PRELOAD=privcmd(tmp_path, wrong=wrong))
    assert done.returncode == 1, done.stdout + done.stderr
    found = torture.parse(done.stdout)
    assert {each.what for each in found.wrongs} & by, found.wrongs


def test_pages_that_are_never_there(program: Path, tmp_path: Path) -> None:
    """Xen finds no page as often as it is asked: that ends, and is told. One call is enough: it takes a second."""
    line = "if (hypercall(privcmd, call->op, call->command, pages + r.from) >= 0)"
    later = line.removeprefix("if (").removesuffix(" >= 0)")
    played = changed(SOURCE, tmp_path, {line: f"errno = EFAULT; if (t->wrong[t->operation] && {later} >= 0)"})
    done = run(played, f"{cpus(1)} --operations=1 --stuck-s=1 {CALLS}", LD_PRELOAD=privcmd(tmp_path))
    assert done.returncode == 1 and '"refused"' in done.stdout, done.stdout + done.stderr


def test_a_kernel_that_allows_no_hypercall(program: Path, tmp_path: Path) -> None:
    done = run(program, f"{cpus(1)} --operations=1 --hypercalls", LD_PRELOAD=privcmd(tmp_path, wrong=7))
    assert done.returncode == 2 and "xen_privcmd.unrestricted=1" in done.stderr and done.stdout == "", done


def test_an_answer_that_says_nothing(program: Path, tmp_path: Path) -> None:
    """Of a port that is closed it is what was asked: whether Xen has written it could not be seen."""
    done = run(program, f"{cpus(1)} --operations=1 --hypercalls", LD_PRELOAD=privcmd(tmp_path, status=0))
    assert done.returncode == 2 and "hypercall 2 of Xen: the answer is what it was asked" in done.stderr, done


def test_no_xen(program: Path, tmp_path: Path) -> None:
    done = run(program, f"{cpus(1)} --operations=1 --hypercalls", LD_PRELOAD=privcmd(tmp_path, wrong=8))
    assert done.returncode == 2 and "hypercall: /dev/xen/privcmd: No such file" in done.stderr, done.stderr


def test_time_ends_a_run(program: Path) -> None:
    found = torture.parse(run(program, f"{cpus(2)} --operations=1000000000 --seconds=1 --pressure=8").stdout)
    assert 0 < found.turns < 1000000000 // 256
    found = torture.parse(run(program, f"{cpus(1)} --operations=1 --slow-us=0 --pressure=8").stdout)
    assert found.turns == 1 and sum(each.slow for each in found.operations) == 256


ADD = "was_added(t, page, counter, add(at, counters[counter].size));"
STRETCH = "move(below(t, STYLES), pages + r->from, r->expected, r->size);"
RECORD = "move(writes, run.pages + page * PAGE + RECORD, next, RECORD_SIZE);"
STORE = 'asm volatile("movq %1, %0" : "=m" (*(uint64_t *)cell) : "r" (value) : "memory");'
IN = "in[i] = (struct iovec){ run.pages + to.from, to.size };"
# What is wrong: a text and what it becomes, operations that use it, and by what it has to be noticed.
WRONG = {
    "a stretch's write is lost": (STRETCH, f"if (t->operations % 64) {STRETCH}", "stretch", {"stretch"}),
    "a stretch's write is torn": (STRETCH, STRETCH.replace("r->size", "r->size / 2"), "stretch", {"stretch"}),
    "a write goes too far": (
        STRETCH, STRETCH.replace("r->size", "r->size + 1"), "stretch", {"stretch", "stretch, of another one"},
    ),
    "a neighbour's bytes are overwritten": (
        STRETCH,
        f"{STRETCH} if (t->operations % 64 == 7) run.pages[r->page * PAGE + STRETCHES + !t->number * STRETCH_SIZE] ^= 1;",
        "stretch", {"stretch", "stretch, of another one"},
    ),
    "a cell is old": (
        "data = load(data_of(writer, page));", "data = cell_value(writer, page, 0);", "read,write", {"old data", "order"},
    ),
    "a flag is old": (
        "flag = load(flag_of(writer, page));",
        "flag = t->operations % 50 ? load(flag_of(writer, page)) : cell_value(writer, page, 0);", "read,write", {"old flag"},
    ),
    "a cell is torn": (STORE, STORE.replace("movq", "movl %k1, %0 #"), "read,write", {"cell", "torn data", "torn flag"}),
    "a cell's write is lost": (
        "store(data_of(t->number, page), cell_value(t->number, page, number));",
        "if (t->operations % 64) store(data_of(t->number, page), cell_value(t->number, page, number));",
        "read,write", {"cell"},
    ),
    "an addition is lost": (
        ADD, "was_added(t, page, counter, t->operations % 100 ? add(at, counters[counter].size) : counter_now(page, counter));",
        "add", {"sum"},
    ),
    "an addition is done twice": (ADD, f"if (!(t->operations % 100)) add(at, counters[counter].size); {ADD}", "add", {"sum"}),
    "an addition has found an old value": (
        ADD, ADD.replace("size))", "size) - !(t->operations % 100))"), "add,exchange", {"found twice"},
    ),
    "an exchange is lost": (
        "was_added(t, page, counter, expected);",
        "if (t->operations % 100) was_added(t, page, counter, expected);", "exchange", {"sum"},
    ),
    "an exchange never ends": ("return found == next;", "return false;", "exchange", {"stuck"}),
    "a record's write is lost": (RECORD, f"if (t->operations % 50) {RECORD}", "record", {"version"}),
    "a record's write is torn": (RECORD, RECORD.replace("RECORD_SIZE)", "100)"), "record", {"record"}),
    "a record's lock is lost": (
        '"r" (ticket + 1) : "memory");', '"r" (ticket + !!(t->operations % 50)) : "memory");', "record", {"stuck"},
    ),
    "the kernel's bytes do not arrive": (IN, IN.replace("run.pages + to.from", "bytes[i]"), "pipe", {"what came back"}),
    "a file's bytes do not arrive": (IN, IN.replace("run.pages + to.from", "bytes[i]"), "file", {"what came back"}),
    "a vector's bytes do not arrive": (IN, IN.replace("run.pages + to.from", "bytes[i]"), "vector", {"what came back"}),
    "a system call says fewer": (
        "write(t->pipe[1], out[0].iov_base, out[0].iov_len), size);",
        "write(t->pipe[1], out[0].iov_base, out[0].iov_len) - 1, size);", "pipe", {"write"},
    ),
    "the alias is another page": (
        "MAP_SHARED | fixed,", "(run.pages ? MAP_PRIVATE : MAP_SHARED) | fixed,", "drop,protect,remap", {"after alias"},
    ),
    "memory that was given back is not empty": (
        "break;\n\t\t\t}\n\t\t}\n\tif (madvise(t->memory, pages * PAGE, MADV_DONTNEED))", "break;\n\t\t\t}\n\t\t}\n\tif (0)",
        "pressure", {"not zero"},
    ),
    "own memory is another's": (
        "store(t->memory + i * PAGE + at, mix(key ^ (i * PAGE + at)));",
        "store(t->memory + i * PAGE + at, i ? mix(key ^ (i * PAGE + at)) : 1);", "pressure", {"own memory"},
    ),
}  # fmt: skip


# Of each thing that is compared.
SHOWN = (
    "a stretch's write is lost", "a neighbour's bytes are overwritten", "a cell is old", "a flag is old", "a cell is torn",
    "an addition is lost", "an addition has found an old value", "an exchange never ends", "a record's write is lost",
    "a record's write is torn", "a file's bytes do not arrive", "a system call says fewer", "the alias is another page",
    "memory that was given back is not empty", "own memory is another's",
)  # fmt: skip


@pytest.mark.parametrize("what", rest_in_soak(WRONG, *SHOWN))
def test_what_is_wrong_is_noticed(tmp_path: Path, what: str) -> None:
    line, becomes, only, by = WRONG[what]
    program = changed(SOURCE, tmp_path, {line: becomes}, "-O0")
    done = run(program, f"{cpus(2)} --pages=2 --operations=2560 --stuck-s=2 --pressure=8 --only={only}")
    assert done.returncode == 1, done.stdout + done.stderr
    found = torture.parse(done.stdout)
    assert {each.what for each in found.wrongs} & by, found.wrongs
    assert torture.metrics(found)[0].value


# Wrong only while two CPUs race.
RACES = {
    "an addition is not atomic": (
        {f'"lock xadd{width}': f'"xadd{width}' for width in ("b", "w", "l %k0", "q")}, "add", {"sum", "found twice"},
    ),
    "an exchange is not atomic": (
        {f'"lock cmpxchg{width}': f'"cmpxchg{width}' for width in "bwlq"}, "exchange", {"sum", "found twice"},
    ),
    "a flag is written before its data": (
        {
            "store(data_of(t->number, page), cell_value(t->number, page, number));\n": "\n",
            "store(flag_of(t->number, page), cell_value(t->number, page, number));\n":
            "store(flag_of(t->number, page), cell_value(t->number, page, number)); "
            "store(data_of(t->number, page), cell_value(t->number, page, number));\n",
        }, "read,write", {"order"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", RACES)
def test_what_is_wrong_in_a_race_is_noticed(tmp_path: Path, what: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this process may use one CPU only: threads that race need two")
    changes, only, by = RACES[what]
    program = changed(SOURCE, tmp_path, changes)
    seeds = iter(range(1000))

    def seen() -> bool:
        words = f"{cpus(2)} --pages=2 --operations=25600 --only={only} --seed={next(seeds)}"
        found = torture.parse(run(program, words).stdout)
        return bool({each.what for each in found.wrongs} & by)

    wait_for(what, 120, seen)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--only=xx", "--only=xx: there is no such one"),
        ("--only=,", "no operation"),
        ("--only=migrate", "migrate wants --nodes"),
        ("--only=hypercall", "hypercall wants --hypercalls"),
        ("--hypercalls=1", "doesn't allow an argument"),
        ("--cpus=0,1,2,3,4,5,6,7,8", "more than 8"),
        ("--cpus=0,x", "--cpus=x"),
        ("--cpus=-1", "--cpus=-1"),
        ("--cpus=0;1", "a comma between"),
        ("--cpus=0,1023 --operations=1", "CPU 1023"),
        ("--nodes=0", "want two"),
        ("--nodes=0,63", "--nodes=63: want a number from 0"),
        ("--pages=1", "--pages=1: want a number from 2 to 64"),
        ("--pages=65", "--pages=65"),
        ("--operations=0", "--operations=0"),
        ("--operations=1x", "--operations=1x"),
        ("--operations= 1", "--operations="),
        ("--unknown", "Usage"),
        ("read", "read: there are only options"),
    ],
)
def test_words(program: Path, words: str, part: str) -> None:
    done = run(program, words)
    assert done.returncode == 2 and part in done.stderr, done.stdout + done.stderr


WRONG_LINE: dict[str, Any] = {
    "event": "wrong", "operation": "add", "thread": 1, "number": 7, "page": 0, "what": "sum", "found": 1, "expected": 2,
}  # fmt: skip
OPERATION: dict[str, Any] = {"event": "operation", "operation": "add", "count": 4, "slow": 3, "wrong": 1}
RESULT = {"event": "result", "turns": 1, "operations": 4, "wrong": 1, "again": 7}


def lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def test_all_of_a_cell_is_a_number() -> None:
    (wrong,) = torture.parse(lines({**WRONG_LINE, "found": 2**64 - 1}, OPERATION, RESULT)).wrongs
    assert wrong.found == 2**64 - 1


def test_figures() -> None:
    other = {**OPERATION, "operation": "record", "slow": 0, "wrong": 0}
    found = torture.parse(lines(WRONG_LINE, OPERATION, other, {**RESULT, "operations": 8}))
    figures = {each.metric: each for each in torture.metrics(found)}
    assert figures["torture.wrong"].value == 1 and "add sum: 0x1, not 0x2" in figures["torture.wrong"].note
    assert figures["torture.operations"].value == 8 and figures["torture.slow"].baseline == {"add": 3, "record": 0}
    assert figures["torture.again"].value == 7


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not ended"),
        (lines(OPERATION), "not ended"),
        ("x\n", "not JSON"),
        (lines([1]), "unexpected"),
        (lines(WRONG_LINE, RESULT), "its sums"),
        (lines(OPERATION, RESULT), "0 lines"),
        (lines(WRONG_LINE, WRONG_LINE, OPERATION, RESULT), "2 lines"),
        (lines(WRONG_LINE, OPERATION, RESULT, OPERATION), "unexpected line"),
        (lines({**OPERATION, "event": "other"}, RESULT), "unexpected line"),
        (lines({**OPERATION, "operation": "xx"}, RESULT), "unexpected operation"),
        (lines({**OPERATION, "slow": 5}, RESULT), "more than all"),
        (lines({**OPERATION, "count": True}, RESULT), "no number of at least 0"),
        (lines({**OPERATION, "wrong": -1}, RESULT), "no number of at least 0"),
        (lines({**WRONG_LINE, "what": ""}, OPERATION, RESULT), "what is wrong"),
        (lines({**WRONG_LINE, "found": "1"}, OPERATION, RESULT), "no number of at least 0"),
        (lines({**WRONG_LINE, "found": 2**64}, OPERATION, RESULT), "no number of at least 0"),
        (lines(WRONG_LINE, OPERATION, OPERATION, {**RESULT, "operations": 8, "wrong": 2}), "operations"),
        (lines({**RESULT, "operations": 0, "wrong": 0, "turns": "1"}), "no number of at least 0"),
        (lines({**RESULT, "operations": 0, "wrong": 0, "again": None}), "no number of at least 0"),
    ],
)
def test_malformed_output_is_refused(text: str, part: str) -> None:
    with pytest.raises(Malformed, match=part):
        torture.parse(text)
