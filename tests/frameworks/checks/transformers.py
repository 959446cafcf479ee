"""Hugging Face transformers: small models from a configuration, trained on data made here.

Nothing is downloaded. The data is a repeating pattern, which a model learns in a few steps.
"""

import json

import torch
from transformers import (BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM)

STEPS = 50
WORDS = 64


def sentences(count=8, length=24):
    """Rows of numbers that go up by the same amount, modulo WORDS - 2."""
    begin = torch.arange(count).unsqueeze(1) * 5
    return (begin + torch.arange(length) * 3) % (WORDS - 2)


def train(model, inputs, labels, steps=STEPS):
    """Trains on the GPU; the loss must fall to half. Returns first and last loss as JSON."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    seen = []
    for _ in range(steps):
        loss = model(input_ids=inputs, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    print(json.dumps({"losses": seen}))
    assert seen[-1] < seen[0] / 2, seen
    return json.dumps({"first": round(seen[0], 4), "last": round(seen[-1], 4)})


def small_gpt2():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=64, n_embd=32, n_layer=2,
                                      n_head=2, bos_token_id=0, eos_token_id=WORDS - 1))


def check_gpt2_training():
    data = sentences().cuda()
    return train(small_gpt2().cuda(), data, data)


def check_bert_training():
    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2,
                                       num_attention_heads=2, intermediate_size=64,
                                       max_position_embeddings=64))
    words = sentences()
    hidden = torch.rand(words.shape) < 0.15
    inputs = words.masked_fill(hidden, WORDS - 1)
    return train(model.cuda(), inputs.cuda(), words.cuda())


def generate(model, **how):
    """The words that a model writes on the GPU must be those that it writes on the CPU."""
    model.eval()
    begin = sentences(2, 6)
    wanted = model.generate(begin, max_new_tokens=8, do_sample=False, pad_token_id=0, **how)
    got = model.cuda().generate(begin.cuda(), max_new_tokens=8, do_sample=False, pad_token_id=0,
                                **how)
    assert torch.equal(got.cpu(), wanted), (got.cpu(), wanted)


def check_gpt2_generation():
    generate(small_gpt2(), use_cache=True)


def check_llama_generation():
    torch.manual_seed(0)
    generate(LlamaForCausalLM(LlamaConfig(vocab_size=WORDS, hidden_size=32, intermediate_size=64,
                                          num_hidden_layers=2, num_attention_heads=2,
                                          num_key_value_heads=1)), use_cache=True)
