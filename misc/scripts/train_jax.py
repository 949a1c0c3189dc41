#!/usr/bin/env python3
"""Trains AlexNet's convolutions and one dense layer in JAX, or only runs them forward, and prints losses and times.

usage: [ucudnn run --report] misc/scripts/train_jax.py [BATCH [STEPS [TYPE [infer]]]]

TYPE: of weights and images: float32, float16 or bfloat16. 256 samples, 20 steps of training and float32 by default.
"""

import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax  # noqa: E402: it reads the variable when it is loaded
import jax.numpy as jnp  # noqa: E402

# Filters, size, stride, padding, and whether a maximum over 3x3 follows.
LAYERS = [(64, 11, 4, 2, True), (192, 5, 1, 2, True), (384, 3, 1, 1, False), (256, 3, 1, 1, False), (256, 3, 1, 1, True)]
CLASSES = 1000


def parameters(key, dtype):
    weights, channels = [], 3
    for filters, size, *_ in LAYERS:
        key, own = jax.random.split(key)
        scale = (2.0 / (channels * size * size)) ** 0.5
        weights.append((scale * jax.random.normal(own, (filters, channels, size, size))).astype(dtype))
        channels = filters
    return weights + [(0.01 * jax.random.normal(key, (channels * 6 * 6, CLASSES))).astype(dtype)]


def loss_of(weights, images, labels):
    x = images
    for w, (_, _, stride, pad, pools) in zip(weights, LAYERS):
        x = jax.lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2)
        x = jax.nn.relu(x)
        if pools:
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")
    scores = jax.nn.log_softmax((x.reshape(x.shape[0], -1) @ weights[-1]).astype(jnp.float32))
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean()


@jax.jit
def step(weights, images, labels):
    loss, gradients = jax.value_and_grad(loss_of)(weights, images, labels)
    return loss, [w - w.dtype.type(1e-3) * g for w, g in zip(weights, gradients)]


@jax.jit
def infer(weights, images, labels):
    return loss_of(weights, images, labels), weights


def main():
    batch = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    dtype = jnp.dtype(sys.argv[3] if len(sys.argv) > 3 else "float32")
    run = infer if sys.argv[4:] == ["infer"] else step
    key = jax.random.PRNGKey(1)
    weights = parameters(key, dtype)
    images = jax.random.normal(key, (batch, 3, 224, 224)).astype(dtype)
    labels = jax.random.randint(key, (batch,), 0, CLASSES)
    losses, times = [], []
    for _ in range(steps):
        begin = time.time()
        loss, weights = run(weights, images, labels)
        losses.append(float(loss))
        times.append((time.time() - begin) * 1e3)
    later = sorted(times[len(times) // 2 :])
    print(
        f"{jax.devices()[0].device_kind}, JAX {jax.__version__}: losses {losses[0]:.6f} {losses[-1]:.6f}, "
        f"first step {times[0]:.0f} ms, later ones {later[len(later) // 2]:.2f} ms"
    )


if __name__ == "__main__":
    main()
