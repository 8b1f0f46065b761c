"""Which GPUs an experiment may use: the config's, those of CUDA_VISIBLE_DEVICES, or the driver's."""

import sys
from types import SimpleNamespace

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.running import gpus

WHOLE = ["GPU-1111aaaa-0000", "GPU-1111bbbb-0000", "GPU-2222cccc-0000"]


class NVMLError(Exception):
    """The base of NVML's errors."""


class NVMLErrorNotFound(NVMLError):
    """What NVML says of an instance that is not there."""


class Driver:
    """Stands in for pynvml: GPUs by UUID, with the UUIDs of their instances where they are divided."""

    NVMLError, NVMLError_NotFound = NVMLError, NVMLErrorNotFound
    NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3

    def __init__(self, uuids, parts=None, there=True):
        self.uuids, self.parts, self.there, self.open = uuids, parts or {}, there, 0

    def nvmlInit(self):
        if not self.there:
            raise NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.uuids[index]

    def nvmlDeviceGetUUID(self, handle):
        return handle

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if uuid not in self.uuids:
            raise NVMLErrorNotFound("Not Found")
        return uuid

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=80 * 2**30, free=60 * 2**30)

    def nvmlDeviceGetComputeMode(self, handle):
        if handle in self.parts:
            raise NVMLError("Not Supported")
        return 3 if handle == self.uuids[-1] else 0

    def nvmlDeviceGetName(self, handle):
        return "Test Card"

    def nvmlDeviceGetMigMode(self, handle):
        if handle not in self.parts:
            raise NVMLError("Not Supported")
        return 1, 1

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, number):
        if number >= 2 * len(self.parts[handle]) or number % 2:  # every second number is empty
            raise NVMLErrorNotFound("Not Found")
        return self.parts[handle][number // 2]


@pytest.fixture
def driver(monkeypatch):
    """Put a driver in place of NVML; CUDA_VISIBLE_DEVICES is not set."""
    monkeypatch.delenv(gpus.VISIBLE, raising=False)

    def install(uuids=WHOLE, parts=None, there=True):
        made = Driver(uuids, parts, there)
        monkeypatch.setitem(sys.modules, "pynvml", made)
        return made

    return install


def devices(wanted="auto"):
    return gpus.devices({"gpus": {"devices": wanted, "runs_per_gpu": 1}})


def test_without_more_all_that_the_driver_tells_of(driver):
    made = driver()
    assert devices() == WHOLE
    assert made.open == 0


def test_the_config_goes_before_the_variable_and_the_variable_before_the_driver(driver, monkeypatch):
    driver()
    monkeypatch.setenv(gpus.VISIBLE, "1")
    assert devices() == [WHOLE[1]]
    assert devices([2, 0]) == [WHOLE[2], WHOLE[0]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (2, WHOLE[2]),
        ("2", WHOLE[2]),
        (WHOLE[0], WHOLE[0]),
        ("GPU-2222", WHOLE[2]),  # as CUDA, by the beginning
    ],
)
def test_numbers_and_beginnings_become_uuids(driver, name, expected):
    driver()
    assert devices([name]) == [expected]


def test_a_device_that_is_named_twice_counts_once(driver):
    driver()
    assert devices([0, WHOLE[0], "GPU-1111a"]) == [WHOLE[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        (" 1 , 0 ", [WHOLE[1], WHOLE[0]]),
        ("2,-1,0", [WHOLE[2]]),  # CUDA reads no further
        (f"{WHOLE[1]},GPU-2222", WHOLE[1:]),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(driver, monkeypatch, text, expected):
    driver()
    monkeypatch.setenv(gpus.VISIBLE, text)
    assert devices() == expected


def test_a_divided_gpu_counts_as_its_instances(driver, monkeypatch):
    parts = ["MIG-aaaa-1", "MIG-bbbb-2"]
    driver(parts={WHOLE[1]: parts})
    assert devices() == [WHOLE[0], *parts, WHOLE[2]]
    assert devices([1]) == parts
    assert devices([WHOLE[1]]) == parts
    monkeypatch.setenv(gpus.VISIBLE, "MIG-bbbb")
    assert devices() == [parts[1]]


@pytest.mark.parametrize("name", [3, "GPU-9999", "MIG-aaaa", "7"])
def test_a_device_that_does_not_exist_is_named_with_those_that_do(driver, name):
    driver()
    with pytest.raises(SeedbedError) as caught:
        devices([0, name])
    assert str(name) in caught.value.what
    assert all(uuid in caught.value.found for uuid in WHOLE)
    assert "gpus.devices" in caught.value.where


def test_a_wrong_variable_is_told_apart_from_a_wrong_config(driver, monkeypatch):
    driver()
    monkeypatch.setenv(gpus.VISIBLE, "5")
    with pytest.raises(SeedbedError, match=gpus.VISIBLE):
        devices()


def test_a_beginning_that_fits_several_is_refused(driver):
    driver()
    with pytest.raises(SeedbedError, match="several"):
        devices(["GPU-1111"])


def test_without_a_driver_names_stay_and_auto_finds_nothing(driver, monkeypatch):
    driver(there=False)
    assert devices() == []
    assert devices([0, "GPU-any"]) == ["0", "GPU-any"]
    monkeypatch.setenv(gpus.VISIBLE, "GPU-x,1")
    assert devices() == ["GPU-x", "1"]


def test_without_the_package_the_search_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    found = gpus.search({})
    assert found.devices == []
    assert "nvidia-ml-py" in found.looked_at[-1]


def test_stand_ins_are_not_looked_up(driver):
    driver()
    assert devices(["fake0", "fake1"]) == ["fake0", "fake1"]
    assert gpus.is_fake("fake0")
    assert not gpus.is_fake(WHOLE[0])


def test_the_search_says_what_it_looked_at(driver, monkeypatch):
    driver(there=False)
    monkeypatch.setenv(gpus.VISIBLE, "")
    config, variable, answer = gpus.search({}).looked_at
    assert "auto" in config
    assert "''" in variable
    assert "Driver Not Loaded" in answer


def test_the_real_package_has_what_is_used():
    pynvml = pytest.importorskip("pynvml")
    used = [name for name in vars(Driver) if name.startswith(("nvml", "NVML"))]
    assert SimpleNamespace(**{name: getattr(pynvml, name) for name in used})
    assert issubclass(pynvml.NVMLError_NotFound, pynvml.NVMLError)


# --- the driver's context ---


class Libcuda:
    """The driver, as far as a context is made with it; `init` is what cuInit returns."""

    def __init__(self, init: int):
        self.asked = []
        self.cuInit = lambda flags: self.asked.append("init") or init
        self.cuDeviceGet = lambda place, number: self.asked.append(f"device {number}") or 0
        self.cuDevicePrimaryCtxRetain = lambda place, device: self.asked.append("context") or 0


@pytest.mark.parametrize(("init", "asked"), [(0, ["init", "device 0", "context"]), (100, ["init"])])
def test_the_first_gpu_is_made_ready_where_there_is_one(monkeypatch, init, asked):
    driver = Libcuda(init)
    monkeypatch.setattr(gpus.ctypes, "CDLL", lambda name: driver)
    gpus.wake().join(10)
    assert driver.asked == asked


def test_without_a_driver_nothing_is_made_ready(monkeypatch, capfd):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(gpus.ctypes, "CDLL", missing)
    gpus.wake().join(10)
    assert capfd.readouterr().err == ""


# --- memory -------------------------------------------------------------------------------------------------


def test_the_memory_of_a_gpu_in_mib(driver):
    made = driver(parts={WHOLE[0]: []})
    assert gpus.memory(WHOLE[0]) == gpus.Memory(total=81_920, free=61_440)
    assert gpus.memory(WHOLE[1]) == gpus.Memory(total=81_920, free=61_440)
    assert gpus.memory(WHOLE[2]).exclusive
    assert gpus.memory("fake0") is None
    assert made.open == 0


def test_without_an_answer_no_memory_is_known(driver, monkeypatch):
    driver(there=False)
    assert gpus.memory(WHOLE[0]) is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpus.memory(WHOLE[0]) is None
