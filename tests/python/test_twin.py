"""The instrumented twin against the plain function: results, side effects, printed tracebacks, on every interpreter at
hand. The comparisons are twin_checks.py, run in a process of their own: they need no dlc.
"""

import functools
import gc
import importlib.util
import json
import linecache
import os
import subprocess
import sys
import types

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import twin_random  # noqa: E402
import twin_reference as reference  # noqa: E402

capture = reference.capture

CHECKS = os.path.join(os.path.dirname(__file__), "twin_checks.py")
THIS = "python{}.{}".format(*sys.version_info)
OTHERS = [f"python3.{minor}" for minor in range(10, 15) if f"python3.{minor}" != THIS]
INTERPRETERS = [THIS, *(pytest.param(other, marks=pytest.mark.slow) for other in OTHERS)]


@functools.cache
def interpreter(name):
    """A runnable interpreter of that version, found on PATH or among pyenv's, or None."""
    if name == THIS:
        return sys.executable
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if os.path.isdir(os.path.join(root, "versions")):
        folders += [
            os.path.join(root, "versions", v, "bin") for v in sorted(os.listdir(os.path.join(root, "versions")))
        ]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.exists(path) and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path


def checked(version, *what):
    path = interpreter(version)
    if path is None:
        pytest.skip(f"{version} is not installed")
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([path, CHECKS, *what], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def listed(different):
    return "\n\n".join(f"{name}:\n{how}" for name, how in different.items())


@pytest.mark.parametrize("version", INTERPRETERS)
def test_programs(version):
    """Every statement and expression: equal results, effects and tracebacks; every hook is called by some program."""
    files = ["twin_programs", "twin_programs_flow"]
    if version not in ("python3.10", "python3.11"):
        files.append("twin_programs_new")
    result = checked(version, "programs", *files)
    assert not result["different"], listed(result["different"])
    assert result["count"] >= 100 and not result["refused"] and not result["unused"], result


def test_random_programs(tmp_path):
    path = tmp_path / "random_programs.py"
    path.write_text(twin_random.programs(seed=1, count=30))
    result = checked(THIS, "programs", str(path))
    assert not result["different"], listed(result["different"])
    assert result["count"] == 30 and not result["refused"]


@pytest.mark.parametrize("version", INTERPRETERS)
def test_library_workloads(version):
    result = checked(version, "workloads")
    assert not result["different"], listed(result["different"])
    assert result["count"] >= 31 and result["entered"] >= 500, result


@pytest.mark.parametrize("version", INTERPRETERS)
def test_most_of_the_library_has_twins(version):
    result = checked(version, "library")
    refused = result["refused"]
    assert result["count"] > 1000 and len(refused) <= 0.05 * result["count"], refused
    # The frozen copy of `site` was compiled by another build of the compiler.
    unproven = {name: why for name, why in refused.items() if " the code that runs" in why or "compiled" in why}
    unproven = {name: why for name, why in unproven.items() if not name.startswith("site.")}
    assert not unproven, unproven


def imported(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outer(base):
    def function(a, /, b=1, *rest, c, d=2, **extra):
        """Doc."""
        made = [lambda k: k + a for _ in rest]

        @functools.wraps(function)
        def decorated():
            return base

        class Local:
            x = 1

        return made, decorated, [x + base for x in rest], Local, extra

    return function


def test_code_of_the_twin():
    function = outer(5)
    plain, twin = function.__code__, capture.twin_of(function)
    for same in "name qualname filename freevars firstlineno argcount posonlyargcount".split():
        assert getattr(plain, "co_" + same) == getattr(twin, "co_" + same)
    first = plain.co_argcount
    assert twin.co_varnames[: first + 2 + len(capture.HIDDEN)] == (*plain.co_varnames[: first + 2], *capture.HIDDEN)
    assert {line for *_, line in plain.co_lines()} == {line for *_, line in twin.co_lines()}

    def nested(code):
        found = {c for c in code.co_consts if isinstance(c, types.CodeType)}
        return {c for code in found for c in ([code] if code.co_name != "<listcomp>" else nested(code))}

    assert {id(code) for code in nested(plain)} == {id(code) for code in nested(twin)} and len(nested(plain)) == 3
    made, decorated, sums, _, extra = reference.twin_function(function)(1, 2, 3, c=4, e=6)
    assert (made[0](1), decorated(), sums, extra) == (2, 5, [8], {"e": 6})
    assert made[0].__code__ in plain.co_consts[1:] or made[0].__code__ in nested(plain)


def test_one_twin_for_a_code_object():
    module_globals = {"outer": outer}
    assert capture.twin_of(outer(1)) is capture.twin_of(outer(2))
    code = outer(1).__code__.replace(co_name="outer")
    function = types.FunctionType(code, module_globals, "outer", None, outer(1).__closure__)
    for _ in range(2):
        with pytest.raises(capture.Untwinnable):
            capture.twin_of(function)
    key = id(code)
    assert key in capture._twins
    del function, code
    gc.collect()
    assert key not in capture._twins


async def coroutine():
    return 1


def all_locals():
    x = 1
    return x, locals()


def own_frame():
    return [sys._getframe(0) for _ in range(1)]


def evaluated(x):
    return eval(x) if x else 0


def variables():
    f = vars
    return f


def deleted_cell():
    value = 1

    def inner():
        nonlocal value
        del value

    return inner


def deleted_global():
    global nothing
    nothing = 1
    del nothing


def grouped():
    try:
        pass
    except* ValueError:
        pass


def matched(x):
    match x:
        case 1 | [2, _]:
            return x


def awaited(items):
    return (x async for x in items)


@pytest.mark.parametrize(
    "function, reason, offset",
    [
        (coroutine, "coroutine", 0),
        (all_locals, "locals looks at the frame", 2),
        (own_frame, "_getframe looks at the frame", 1),
        (evaluated, "eval looks at the frame", 1),
        (variables, "vars looks at the frame", 1),
        (deleted_cell(), "del of value", 2),
        (deleted_global, "del of nothing", 3),
        (grouped, "TryStar", 1),
        (matched, "MatchSequence", 2),
        (awaited, "asynchronous comprehensions", 1),
        (eval("lambda: 1"), "no source", None),
        (len, "no Python functions", None),
    ],
)
def test_refused(function, reason, offset):
    for _ in range(2):
        with pytest.raises(capture.Untwinnable, match=reason) as caught:
            capture.twin_of(function)
        line = None if offset is None else function.__code__.co_firstlineno + offset
        assert caught.value.lineno == line


def test_changed_file_is_refused(tmp_path):
    path = tmp_path / "changing.py"
    path.write_text("def f(x):\n    return x + 1\n\n\ndef g(x):\n    return x * 2\n")
    module = imported(path)
    path.write_text("def f(x):\n    return x + 1\n\n\ndef g(x):\n    return x * 3\n")
    linecache.checkcache()
    assert reference.twin_function(module.f)(1) == 2
    with pytest.raises(capture.Untwinnable, match="not the code that runs") as caught:
        capture.twin_of(module.g)
    assert caught.value.lineno == 5
    path.write_text("x = 1\n\ndef f(x):\n    return x + 1\n")
    linecache.checkcache()
    with pytest.raises(capture.Untwinnable, match="does not define"):
        capture.twin_of(imported(tmp_path / "changing.py").f.__class__(module.f.__code__.replace(co_name="h"), {}))


def test_equal_functions_of_two_files(tmp_path):
    modules = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("def f(x):\n    return x.y\n")
        modules.append(imported(tmp_path / f"{name}.py"))
    one, two = (capture.twin_of(module.f) for module in modules)
    assert modules[0].f.__code__ == modules[1].f.__code__ and one.co_filename != two.co_filename


def test_lambdas_on_a_line_are_told_apart():
    f, g, h = lambda x: x + 1, lambda x: lambda y: x + y, lambda x: lambda y: x * y
    assert [reference.twin_function(each)(3) for each in (f, g(2), h(2))] == [4, 5, 6]


def test_assert_statements_that_pytest_rewrote():
    def positive(x):
        assert x > 0, "must be"
        assert [x] == [1]

    for value in (0, 5, "x"):
        kind, text = reference.outcome(positive, value)
        assert kind == "raised" and (kind, text) == reference.outcome(reference.twin_function(positive), value)


def test_no_warning_is_shown_twice(tmp_path):
    path = tmp_path / "warned.py"
    path.write_text("def f(x):\n    return x is 'text' or '\\d'\n")
    with pytest.warns((SyntaxWarning, DeprecationWarning)):
        module = imported(path)
    assert reference.twin_function(module.f)(1) == "\\d"
