"""The rule by which golden models are filled, as tests/backbone/seeded_fill.h repeats it."""

import torch

MASK = (1 << 64) - 1


def mix(x: int) -> int:
    """The finaliser of splitmix64."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def seed_of(name: str) -> int:
    """FNV-1a."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & MASK
    return seed


def fill(name: str, shape: torch.Size) -> torch.Tensor:
    """Uniform around 1 for norms, around 0 for all else, as wide as keeps activations in size."""
    seed = seed_of(name)
    count = shape.numel()
    noise = torch.tensor([2 * (mix((seed + i) & MASK) >> 40) / 2**24 - 1 for i in range(count)],
                         dtype=torch.float64)
    if "norm" in name:
        noise = 1 + 0.2 * noise
    elif len(shape) == 1:
        noise = 0.5 * noise
    elif "embed" not in name:
        noise = noise * (3 / shape[1]) ** 0.5
    return noise.to(torch.float32).reshape(shape)
