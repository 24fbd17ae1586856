"""CLAX on sessions, run by benchmarks/peers_clax.py with the Python of CLAX's own environment; it knows no clickmix.

    python clax_program.py sessions.npz found.npz EPOCHS

`documents` (sessions, positions) of sessions.npz has codes from 1, `clicks` 0 or 1. CLAX's models are trained by their
own loss with Adam, on batches of sessions in random order, at a rate that falls to 0, so that they end at a top.
"""

# mypy: ignore-errors

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from clax import models
from flax import nnx

BATCH, RATE = 4096, 0.1


def main(source, target, epochs):
    given = np.load(source)
    documents, clicks = jnp.asarray(given["documents"]), jnp.asarray(given["clicks"])
    positions = documents.shape[1]
    size = {"query_doc_pairs": int(documents.max()) + 1, "rngs": nnx.Rngs(0)}
    made = {
        "pbm": models.PositionBasedModel(positions=positions + 1, **size),
        "ubm": models.UserBrowsingModel(positions=positions + 1, **size),
        "dcm": models.DependentClickModel(positions=positions + 1, **size),
        "dbn": models.DynamicBayesianNetwork(**size),
    }
    found = {}
    for name, model in made.items():
        started = time.perf_counter()
        train(model, documents, clicks, epochs)
        found[f"{name} seconds"] = time.perf_counter() - started
        found[f"{name} clicks"] = np.exp(predicted(model, documents, clicks))
        print(name, round(found[f"{name} seconds"], 1), flush=True)
    np.savez(target, **found)


def batch_of(documents, clicks):
    shape = documents.shape
    places = jnp.broadcast_to(jnp.arange(1, shape[1] + 1), shape)
    return {"positions": places, "query_doc_ids": documents, "clicks": clicks, "mask": jnp.ones(shape, dtype=bool)}


def train(model, documents, clicks, epochs):
    sessions = len(documents)
    steps = max(sessions // BATCH, 1)
    optimizer = nnx.ModelAndOptimizer(model, optax.adam(optax.cosine_decay_schedule(RATE, epochs * steps)))

    @nnx.jit
    def step(model, optimizer, some):
        def loss(model):
            return model.compute_loss(batch_of(documents[some], clicks[some])).mean()

        optimizer.update(nnx.grad(loss)(model))

    rng = np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(sessions)[: steps * min(BATCH, sessions)]
        for some in order.reshape(steps, -1):
            step(model, optimizer, jnp.asarray(some))


def predicted(model, documents, clicks):
    """The log of P(click | the clicks above it), session by session."""
    every = nnx.jit(lambda model, some: model.predict_conditional_clicks(batch_of(documents[some], clicks[some])))
    parts = np.array_split(np.arange(len(documents)), max(len(documents) // 16384, 1))
    return np.concatenate([np.asarray(every(model, jnp.asarray(some))) for some in parts])


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
