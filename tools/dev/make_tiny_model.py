"""Makes tests/golden/tiny_model.gguf, the model that tests decode text with: 190,000 parameters, trained by medusa.

    pip install sentencepiece gguf safetensors numpy torch==2.11.0 transformers==5.23.0
    tools/get_demo_model.sh
    python3 tools/dev/make_tiny_model.py WORK_FOLDER
    python3 tools/dev/make_golden_logits.py tests/golden/tiny_model.gguf tiny_model 200

1. SmolLM2-135M-Instruct writes short stories for children (`medusa distill`, `medusa dataset export`).
2. sentencepiece makes a vocabulary of 512 pieces of them, byte pieces included.
3. A Llama of seeded random weights learns them: the joint stage of `medusa train` with all layers and the text's own loss.
   That stage leaves embedding and LM head as they are, so these are made of how often pieces stand near each other.
4. The result, in bfloat16, and its vocabulary become one GGUF file by the package gguf.
5. transformers continues the beginnings of stories with the folder that medusa wrote: tests/golden/tiny_model_texts.json.

Some 16 minutes on two cores with AVX-512; what is done is not done again.
"""

import io
import json
import pathlib
import random
import re
import subprocess
import sys

import gguf
import numpy
import safetensors.numpy
import safetensors.torch
import sentencepiece
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO_MODEL = ROOT / ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf"
GOLDEN = ROOT / "tests/golden"
LAYERS, HIDDEN, HEADS, KV_HEADS, MLP, VOCAB, CONTEXT = 5, 64, 8, 4, 96, 512, 512
TEMPLATE = "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}</s>{% endif %}{% endfor %}"

OPENINGS = ["Once upon a time", "Once upon a time", "Once upon a time", "Lily and Tom", "The big dog", "One day, a boy", "Mom said",
            "In the park", "A little bird", "The sun was", "Tim had a red", "There was a cat", "Sam liked to", "At night"]
HEROES = ["a girl named Lily", "a boy named Tom", "a big dog", "a little bird", "a cat", "Lily and Tom", "Sam and his dog", "a red ball",
          "a boat", "Mom and Lily", "a boy named Tim", "a small fish"]
PLACES = ["in the park", "by the sea", "in the garden", "at home", "in the forest", "on a hill", "at night", "in the snow"]


def medusa(*arguments):
    subprocess.run([ROOT / "build/release/medusa", *map(str, arguments)], check=True)


def stories(work):
    """What the demo's model answered, each up to its last whole sentence, in ASCII."""
    draw = random.Random(1)
    prompts = [f"Write a very short story for small children about {draw.choice(HEROES)} {draw.choice(PLACES)}. Use easy words and short "
               f"sentences. Begin with the words \"{draw.choice(OPENINGS)}\"." for _ in range(1600)]
    (work / "prompts.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in prompts))
    (work / "stories.yaml").write_text(f"""run: {work}/stories
seed: 1
backbone: {{model: {DEMO_MODEL}, dtype: stored}}
distill: {{prompts: [{work}/prompts.jsonl], temperature: 0.6, top_p: 0.9, max_new_tokens: 128, batch: 64, record_hidden: false}}
""")
    medusa("distill", "--config", work / "stories.yaml")
    medusa("dataset", "export", work / "stories.jsonl", "--config", work / "stories.yaml")
    found = []
    for line in (work / "stories.jsonl").read_text().splitlines():
        text = json.loads(line)["answer"].translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2014: "-"})
        text = " ".join(text.encode("ascii", "ignore").decode().replace("*", "").replace("#", "").split()).strip('" ')
        end = max(text.rfind(mark) for mark in ".!?")
        if end > 100:
            found.append(text[:end + 1])
    return found


def vocabulary(work, texts):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=out, model_type="bpe", vocab_size=VOCAB, num_threads=1, character_coverage=1.0,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2)
    (work / "random").mkdir(exist_ok=True)
    (work / "random/tokenizer.model").write_bytes(out.getvalue())
    (work / "random/tokenizer_config.json").write_text(json.dumps(
        {"bos_token": "<s>", "eos_token": "</s>", "chat_template": TEMPLATE, "tokenizer_class": "LlamaTokenizer"}))


def embedding(folder, texts, draw):
    """Pieces that stand among the same ones lie together: the largest parts of the positive pointwise mutual information, [V, H]."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    near = numpy.zeros((VOCAB, VOCAB))
    for text in texts:
        ids = numpy.array([1] + pieces.encode(text) + [2])
        for apart in range(1, 5):
            numpy.add.at(near, (ids[:-apart], ids[apart:]), 1 / apart)
    near = numpy.hstack([near, near.T])  # what follows, and what stands before
    share = near / near.sum()
    chance = share.sum(1, keepdims=True) * share.sum(0, keepdims=True)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        information = numpy.nan_to_num(numpy.maximum(numpy.log(share / chance), 0), posinf=0, neginf=0)
    left, sizes, _ = numpy.linalg.svd(information, full_matrices=False)
    rows = left[:, :HIDDEN] * sizes[:HIDDEN] ** 0.5
    rows[near.sum(1) == 0] = draw.standard_normal(HIDDEN)  # pieces that never occur are all unlikely together
    rows += 0.3 * rows.std() * draw.standard_normal(rows.shape)
    return (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype(numpy.float32)


def random_model(folder, texts):
    draw = numpy.random.default_rng(1)

    def matrix(rows, columns, scale=1.0):
        return (draw.standard_normal((rows, columns)) * scale / columns**0.5).astype(numpy.float32)

    kv = HIDDEN // HEADS * KV_HEADS
    deep = (2 * LAYERS) ** -0.5  # what is added to the states, so that they grow no wider than one layer's
    tensors = {"model.embed_tokens.weight": embedding(folder, texts, draw), "model.norm.weight": numpy.ones(HIDDEN, numpy.float32)}
    for layer in range(LAYERS):
        parts = {"self_attn.q_proj": matrix(HIDDEN, HIDDEN), "self_attn.k_proj": matrix(kv, HIDDEN), "self_attn.v_proj": matrix(kv, HIDDEN),
                 "self_attn.o_proj": matrix(HIDDEN, HIDDEN, deep), "mlp.gate_proj": matrix(MLP, HIDDEN), "mlp.up_proj": matrix(MLP, HIDDEN),
                 "mlp.down_proj": matrix(HIDDEN, MLP, deep), "input_layernorm": numpy.ones(HIDDEN, numpy.float32),
                 "post_attention_layernorm": numpy.ones(HIDDEN, numpy.float32)}
        tensors |= {f"model.layers.{layer}.{name}.weight": value for name, value in parts.items()}
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": MLP,
         "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB,
         "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
         "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "torch_dtype": "float32"}, indent=1))


def learn(work, texts):
    draw = random.Random(2)
    with open(work / "texts.jsonl", "w") as out:
        for text in texts:
            words = [match.start() for match in re.finditer(" ", text)]
            cut = words[draw.randrange(1, 4)]  # the question is how the story begins, the answer the story
            out.write(json.dumps({"messages": [{"role": "user", "content": text[:cut]}, {"role": "assistant", "content": text[cut:]}]}) + "\n")
    (work / "learn.yaml").write_text(f"""run: {work}/learn
seed: 1
backbone: {{model: {work}/random, dtype: float32}}
train:
  stages: [heads, joint]
  epochs: 1
  validation_fraction: 0.02
  batch_positions: 4096
  heads: {{num_heads: 1, output: shared}}
  joint:
    part: all_layers
    backbone_loss: text
    heads_weight: 0.000001
    epochs: {EPOCHS}
    batch_tokens: 8192
    learning_rate: 0.004
    warmup_steps: 50
    chunk_positions: 2048
    report_every: 20
    checkpoint_every: 1000000
    guard: {{samples: 0}}
""")
    if not (work / "learn/dataset").exists():
        medusa("dataset", "import", work / "texts.jsonl", "--config", work / "learn.yaml")
    medusa("train", "--config", work / "learn.yaml")


EPOCHS = 16
GGUF_NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
              "post_attention_layernorm": "ffn_norm"}


def write_gguf(folder, vocabulary_file):
    writer = gguf.GGUFWriter(str(GOLDEN / "tiny_model.gguf"), "llama")
    writer.add_name("tiny model of medusa.cpp's tests")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(MLP)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCAB)
    writer.add_rope_freq_base(10000.0)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary_file))
    ids = range(VOCAB)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([pieces.id_to_piece(i) for i in ids])
    writer.add_token_scores([pieces.get_score(i) for i in ids])
    writer.add_token_types([2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1 for i in ids])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    tensors = safetensors.torch.load_file(folder / "model.safetensors")

    def add(name, tensor):
        if tensor.dim() == 1:
            writer.add_tensor(name, tensor.float().numpy())
            return
        assert torch.equal(tensor.bfloat16().to(tensor.dtype), tensor), name
        writer.add_tensor(name, tensor.bfloat16().contiguous().view(torch.uint8).numpy(), raw_dtype=gguf.GGMLQuantizationType.BF16)

    add("token_embd.weight", tensors.pop("model.embed_tokens.weight"))
    add("output_norm.weight", tensors.pop("model.norm.weight"))
    for name, tensor in sorted(tensors.items()):
        layer, part = re.fullmatch(r"model\.layers\.(\d+)\.(.+)\.weight", name).groups()
        if part in ("self_attn.q_proj", "self_attn.k_proj"):  # dimensions i and i + D/2 of a head side by side, as llama.cpp turns them
            half = HIDDEN // HEADS // 2
            tensor = tensor.view(-1, 2, half, HIDDEN).transpose(1, 2).reshape(tensor.shape)
        add(f"blk.{layer}.{GGUF_NAMES[part]}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_texts(folder, vocabulary_file):
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary_file))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    texts = []
    for opening in ["Once upon a time", "The big dog", "Lily and Tom"]:
        prompt = [1] + pieces.encode(opening)
        with torch.inference_mode():
            found = model.generate(torch.tensor([prompt]), max_new_tokens=60, do_sample=False)[0].tolist()
        texts.append({"prompt": prompt, "tokens": found[len(prompt):], "text": pieces.decode(found[1:])})
        print(texts[-1]["text"], file=sys.stderr)
    made_by = f"tools/dev/make_tiny_model.py, transformers {transformers.__version__}, torch {torch.__version__}, float32, greedy"
    (GOLDEN / "tiny_model_texts.json").write_text(
        '{"made_by": %s, "texts": [\n%s\n]}\n' % (json.dumps(made_by), ",\n".join(map(json.dumps, texts))))


def main():
    work = pathlib.Path(sys.argv[1]).absolute()
    work.mkdir(exist_ok=True)
    texts = stories(work)
    print(len(texts), "stories,", sum(map(len, texts)), "characters", file=sys.stderr)
    if not (work / "random").exists():
        vocabulary(work, texts)
        random_model(work / "random", texts)
    learn(work, texts)
    write_gguf(work / "learn/joint/model", work / "random/tokenizer.model")
    write_texts(work / "learn/joint/model", work / "random/tokenizer.model")


if __name__ == "__main__":
    main()
