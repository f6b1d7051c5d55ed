"""Copies of a GGUF model in other number formats, for those who read no other.

Development only. Needs: pip install gguf
"""

import pathlib

import gguf


def write_copy(source: pathlib.Path, matrices: str, target: pathlib.Path, template: str | None = None) -> None:
    """The same model with its matrices stored otherwise; vectors as float32.

    template: the chat template; None: as it is.
    """
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
    for field in reader.fields.values():
        kind = field.types[0]
        if field.name == "general.architecture" or field.name.startswith("GGUF."):
            continue
        if field.name == gguf.Keys.Tokenizer.CHAT_TEMPLATE and template is not None:
            continue
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, inner)
    if template is not None:
        writer.add_chat_template(template)
    for tensor in reader.tensors:
        numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        kind = gguf.GGMLQuantizationType[matrices if numbers.ndim > 1 else "F32"]
        writer.add_tensor(tensor.name, gguf.quants.quantize(numbers, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
