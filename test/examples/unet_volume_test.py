"""misc/examples/unet_volume.py: passes against PyTorch's, its check against the whole volume in double precision, and
misc/scripts/volume_pytorch.py, which compares it with others.

usage: test/examples/unet_volume_test.py MISC VGG16 OUT.json, with misc/python in PYTHONPATH and libucudnn.so where the
loader looks. VGG16: the built vgg16_host_memory
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(sys.argv[1], "examples"))

import unet_volume  # noqa: E402: says what is missing without PyTorch
import torch  # noqa: E402


def options(*words):
    return unet_volume.arguments().parse_args(words)


def test_passes():
    """Three levels: one works in the memory of the one above, which works in the first one's."""
    model, volume = unet_volume.prepare(
        options("--size", "16", "--channels", "2", "--levels", "3", "--device-memory", "256KiB"))
    expected = model(volume)
    network = unet_volume.HostUNet(model, 16)
    for _ in range(2):
        network.result.fill_(float("nan"))
        result, _ = unet_volume.timed(network, volume, 1)
        torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)
    worst = unet_volume.difference(model, volume, result, blocks=2)
    assert 0 < worst < 1e-3, worst


def test_check():
    """Blocks in a volume larger than they and what they depend on."""
    model, volume = unet_volume.prepare(options("--size", "64", "--channels", "2", "--levels", "2"))
    result = model.double()(volume.double())
    model.float()
    worst = unet_volume.difference(model, volume, result, blocks=5)
    assert worst < 1e-12, worst
    result[0, 1, 63, 63, 63] += 0.1 * result.abs().max()
    worst = unet_volume.difference(model, volume, result, blocks=5)
    assert 0.09 < worst, worst


def test_comparison():
    """But MONAI's part, which a machine need not have."""
    script, vgg16, out = os.path.join(sys.argv[1], "scripts", "volume_pytorch.py"), *sys.argv[2:]
    subprocess.run([sys.executable, script, out, "--quick", "--parts", "unet", "vgg16", "--vgg16", vgg16], check=True)
    with open(out, encoding="utf-8") as file:
        unet, theirs, ours = json.load(file)["runs"]
    assert unet["name"] == "unet" and unet["difference_to_double"] < 1e-5 and unet["least_s"] > 0, unet
    assert theirs["fastest"]["least_ms_an_image"] > 0, theirs
    assert [each["name"] for each in ours["runs"]] == ["in core", "on the host", "ucudnnMalloc"], ours
    assert [each["batch"] for each in ours["runs"][1:]] == 2 * [theirs["batch"]], ours


if __name__ == "__main__":
    if torch.version.cuda and not torch.cuda.is_available():
        sys.exit("this test needs PyTorch without CUDA, or a GPU: both would use PyTorch's CUDA, not the simulator")
    with torch.no_grad():
        test_passes()
        test_check()
    test_comparison()
    print("the volume is right")
