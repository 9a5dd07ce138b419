"""Files written piece by piece are those that the libraries write of whole tensors, and are read in pieces."""

import pickle

import pytest
import torch
from huggingface_hub import save_torch_state_dict
from safetensors.torch import save_file

from training.engines.chunks import cut
from training.errors import OutsideError
from training.learn import tensor_files
from training.learn.tensor_files import TYPES, Outline, TensorFile, TensorWriter


def some_tensors():
    draw = torch.Generator().manual_seed(0)
    tensors = {f"{kind}.{n}": torch.randint(0, 2, (n, 3), generator=draw) for kind in TYPES for n in (2, 0, 1)}
    tensors = {name: tensor.to(getattr(torch, name.partition(".")[0])) for name, tensor in tensors.items()}
    return tensors | {"ä": torch.randn(50, 7, generator=draw), "number": torch.tensor(2.5)}


def outlines(tensors):
    return {name: Outline.of(tensor) for name, tensor in tensors.items()}


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_file_is_the_one_that_safetensors_writes(tmp_path, metadata):
    tensors = some_tensors()
    save_file(tensors, tmp_path / "whole", metadata)
    with TensorWriter() as writer:
        writer.add(tmp_path / "pieces", outlines(tensors), metadata)
        writer.write(cut(reversed([*tensors.items()]), size=100))
    assert (tmp_path / "pieces").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("limit", [10**9, 3000])
def test_a_models_files_are_those_that_the_hub_writes(tmp_path, monkeypatch, limit):
    tensors = {f"layer.{n}": torch.randn(n + 1, 100) for n in range(8)}
    folders = [tmp_path / name for name in ("whole", "pieces")]
    for folder in folders:
        folder.mkdir()
    save_torch_state_dict(tensors, folders[0], max_shard_size=limit)
    split = tensor_files.split_torch_state_dict_into_shards
    monkeypatch.setattr(
        tensor_files, "split_torch_state_dict_into_shards", lambda state: split(state, max_shard_size=limit)
    )
    with TensorWriter() as writer:
        writer.add_model(folders[1], outlines(tensors))
        writer.write(cut(tensors.items(), size=1000))
    files = [{file.name: file.read_bytes() for file in folder.iterdir()} for folder in folders]
    assert files[0] == files[1]
    # 400, 800 and 1200 bytes are in one file, then each of 1600 and more is by itself: six files and an index
    assert len(files[0]) == (1 if limit > 3000 else 7)


def test_a_tensor_that_arrives_in_part_is_an_error(tmp_path):
    tensors = {"a": torch.zeros(100)}

    def first_piece():
        with TensorWriter() as writer:
            writer.add(tmp_path / "file", outlines(tensors))
            writer.write([next(cut(tensors.items(), size=100))])

    with pytest.raises(OutsideError, match="a did not arrive in full"):
        first_piece()


def test_a_file_is_read_a_tensor_at_a_time_also_by_rows_and_in_another_process(tmp_path):
    tensors = some_tensors()
    save_file(tensors, tmp_path / "file")
    file = TensorFile(tmp_path / "file")
    assert {*file} == tensors.keys()
    assert len(file) == len(tensors)
    assert "none" not in file
    assert file.outlines == outlines(tensors)
    for read in (file, pickle.loads(pickle.dumps(file))):  # noqa: S301 (made here)
        assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())
    # of 50 rows over 3 ranks each has 17, the last one 16, and a fourth would have none
    parts = [file.rows("ä", slice(first, first + 17)) for first in (0, 17, 34, 51)]
    assert [len(part) for part in parts] == [17, 17, 16, 0]
    assert torch.equal(torch.cat(parts), tensors["ä"])
    assert file.rows("number", slice(3, 4)) == 2.5
    with pytest.raises(KeyError):
        file["none"]
