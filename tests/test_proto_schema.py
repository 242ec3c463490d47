"""The schema against the list of all that Caffe's has, and what recaffe adds."""

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from recaffe.proto import recaffe_pb2 as pb

GOLDEN = Path(__file__).parent / "golden"
LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


def schema_rows():
    lines = (GOLDEN / "caffe_schema.tsv").read_text().splitlines()[1:]
    return [(*line.split("\t"), "", "", "", "")[:7] for line in lines]


def file_proto():
    """The schema as registered, in the form of a message."""
    return FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)


def written_default(field):
    """The default of a field as the list writes it; empty where the schema gives none."""
    if not field.has_default_value:
        return ""
    if field.enum_type:
        return field.enum_type.values_by_number[field.default_value].name
    if field.type == FieldDescriptor.TYPE_BOOL:
        return "true" if field.default_value else "false"
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return f"{field.default_value:.6g}"
    return str(field.default_value)


FIELDS = [row for row in schema_rows() if row[3] != "enum"]
ENUM_VALUES = [row for row in schema_rows() if row[3] == "enum"]


def test_the_list_is_whole():
    assert len(FIELDS) == 423
    assert len(ENUM_VALUES) == 111


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: f"{row[0]}.{row[1]}")
def test_field_is_caffes(row):
    message, name, number, label, kind, default, packed = row
    field = pb.DESCRIPTOR.message_types_by_name[message].fields_by_name[name]
    (proto_message,) = (each for each in file_proto().message_type if each.name == message)
    (proto,) = (each for each in proto_message.field if each.name == name)
    assert field.number == int(number)
    assert proto.label == LABELS[label]
    target = field.message_type or field.enum_type
    built_in = FieldDescriptorProto.Type.Name(proto.type).removeprefix("TYPE_").lower()
    assert (target.name if target else built_in) == kind
    assert written_default(field) == default
    assert proto.options.packed == (packed == "packed")


@pytest.mark.parametrize("row", ENUM_VALUES, ids=lambda row: f"{row[0]}.{row[1]}")
def test_enum_value_is_caffes(row):
    path, name, number = row[:3]
    enum = pb.DESCRIPTOR.pool.FindEnumTypeByName(f"recaffe.{path}")
    assert enum.values_by_name[name].number == int(number)


def test_registered_under_its_own_name():
    pool = descriptor_pool.Default()
    assert pool.FindFileByName("recaffe/proto/recaffe.proto").package == "recaffe"


@pytest.mark.parametrize(
    ("message", "name", "number"),
    [
        ("LayerParameter", "annotated_data_param", 200),
        ("LayerParameter", "multibox_loss_param", 201),
        ("LayerParameter", "permute_param", 202),
        ("LayerParameter", "prior_box_param", 203),
        ("LayerParameter", "detection_output_param", 204),
        ("LayerParameter", "norm_param", 206),
        ("LayerParameter", "option_block", 1000),
        ("BlobProto", "raw_data_type", 10),
        ("BlobProto", "raw_data", 12),
        ("SolverState", "state", 100),
        ("TransformationParameter", "crop_h", 11),
        ("TransformationParameter", "crop_w", 12),
    ],
)
def test_numbers_others_write_too(message, name, number):
    assert pb.DESCRIPTOR.message_types_by_name[message].fields_by_name[name].number == number


def test_own_solver_fields_are_off_by_default():
    solver = pb.SolverParameter()
    assert (solver.warmup_iter, solver.warmup_start_lr, solver.min_lr) == (0, 0.0, 0.0)


def test_a_state_entry_holds_an_array_bit_by_bit():
    state = pb.SolverState(iter=3)
    state.state.add(key="layer/h", dtype="<f4", shape=[2, 1], value=b"\x00\x00\x80?\x00\x00\x00@")
    again = pb.SolverState.FromString(state.SerializeToString())
    assert (again.state[0].key, list(again.state[0].shape)) == ("layer/h", [2, 1])
    assert again.state[0].value == b"\x00\x00\x80?\x00\x00\x00@"


def test_generated_module_matches_the_schema(tmp_path):
    """Every message of recaffe.proto, compiled here and now, is the committed one."""
    pytest.importorskip("grpc_tools")
    source = Path(pb.__file__).with_name("recaffe.proto")
    folder = tmp_path / "recaffe" / "proto"
    folder.mkdir(parents=True)
    (folder / "recaffe.proto").write_text(source.read_text())
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=."]
    subprocess.run([*command, "recaffe/proto/recaffe.proto"], cwd=tmp_path, check=True)
    assert descriptor_line(folder / "recaffe_pb2.py") == descriptor_line(Path(pb.__file__))


def descriptor_line(module):
    """The line of a generated module that holds the whole schema."""
    (line,) = (line for line in module.read_text().splitlines() if line.startswith("DESCRIPTOR = "))
    return line
