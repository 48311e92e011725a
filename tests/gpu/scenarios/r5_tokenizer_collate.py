"""R5: text is tokenised in the collate function, by two workers, after a first use in the parent.

A batch costs a worker about 6 tc, nearly all of it in collate. Fix A: tokenised once,
before training."""

import time

import torch
from torch import nn

import harness

WORDS = ["w%d" % i for i in range(5000)]


class Texts(torch.utils.data.Dataset):
    def __init__(self, length, words, tokens=None):
        self.length = length
        self.words = words
        self.tokens = tokens

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.tokens is not None:
            return self.tokens[index % 64]
        return " ".join(WORDS[(index * 7 + i * 13) % 5000] for i in range(self.words))


class Tokenizer:
    """Pure Python: splits words into pieces and looks them up."""

    def __init__(self, rounds=1):
        self.table = {}
        self.rounds = rounds

    def encode(self, text):
        result = []
        for _ in range(self.rounds):
            result = [self.table.setdefault(word[:k], len(self.table) % 8192)
                      for word in text.split() for k in range(1, len(word) + 1)]
        return result[:64]

    def __call__(self, texts):
        return torch.tensor([self.encode(text) for text in texts])


def main():
    job = harness.Job("R5", "tokenizer_collate", steps=80)
    batch, width = (8, 16) if job.tiny else (64, 512)
    embed = nn.Embedding(8192, width).to(job.device)
    body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8192)).to(job.device)
    optimizer = torch.optim.SGD(list(embed.parameters()) + list(body.parameters()), lr=0.001)
    ballast = harness.Ballast(job, torch.bfloat16 if job.cuda else torch.float32)

    def step(tokens):
        scores = body(embed(tokens))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ballast.run()
        return loss.detach()

    tokens = torch.randint(0, 8192, (batch, 64), device=job.device)
    tc, tl = job.step_times("R5", lambda: step(tokens))
    tc += ballast.set(2.0 * tl if not job.tiny else 0.1)
    tokenizer = Tokenizer()
    words = Texts(batch, 60)
    begin = time.perf_counter()
    tokenizer([words[i] for i in range(batch)])
    once_ms = (time.perf_counter() - begin) * 1e3
    tokenizer.rounds = max(1, round(6.0 * tc / once_ms))
    if job.twin:
        tc += ballast.set(5.0 * max(6.0 * tc, once_ms))
    meter = job.meter()
    length = batch * (meter.total() + 2)
    if job.fix == "A":
        data = Texts(length, 60, [torch.tensor(tokenizer.encode(words[i % batch]))
                                  for i in range(64)])
        batches = harness.loader(job, data, batch, num_workers=2)
    else:
        batches = harness.loader(job, Texts(length, 60), batch, num_workers=2, collate_fn=tokenizer)
    loss = None
    for tokens in batches:
        loss = step(tokens.to(job.device, non_blocking=True))
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="DATA")
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_COLLATE", "DATA_QUEUED", "DATA_CPU", "DATA_IPC"], ["LIMITER_WORKERS"],
            share=harness.idle_share(tc, mean), accept=["num-workers", "collate", "cheaper-prepare"],
            forbid=["prefetch-factor", "cache"])
    harness.finish(job, meter, tc, tl, expect, batch, loss)


if __name__ == "__main__":
    main()
