"""The examples of clusters in the docs, checked by what Kubernetes and Dask publish; no cluster is needed."""

from __future__ import annotations

import copy
import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.support import REPOSITORY

EXAMPLES = REPOSITORY / "docs" / "examples" / "clusters"
KUBERNETES = "v1.33.0-local-strict"
INSTALL = "is missing: python -m pip install kubernetes-validate dask-kubernetes dask-jobqueue"


def package(name: str) -> Path:
    """Return the folder of an installed package, which is not imported; skips the test without it."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} {INSTALL}")
    return Path(found.origin).parent


def retrieve(uri: str) -> Resource[Any]:
    """Return what the schemas of dask-kubernetes refer to."""
    if uri.startswith("python://dask_kubernetes/"):
        text = (package("dask_kubernetes") / uri.removeprefix("python://dask_kubernetes/")).read_text("utf-8")
        return DRAFT202012.create_resource(yaml.safe_load(text))
    schemas = package("kubernetes_validate") / "kubernetes-json-schema" / KUBERNETES / "_definitions.json"
    definitions = json.loads(schemas.read_text("utf-8"))
    # The former name of `$defs`, under which the schemas of dask-kubernetes refer to them.
    return DRAFT202012.create_resource({**definitions, "definitions": definitions.get("$defs", {})})


def closed(schema: Any) -> Any:
    """Return a schema whose objects take no other fields."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value) for name, value in schema.items()}
    return {"additionalProperties": False, **made} if "properties" in made and "$ref" not in made else made


def problems(document: dict[str, Any]) -> Iterator[str]:
    folder = package("dask_kubernetes") / "operator" / "customresources"
    definition = yaml.safe_load((folder / "daskjob.yaml").read_text("utf-8"))
    schema = closed(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    schema["properties"] |= {"apiVersion": {"const": "kubernetes.dask.org/v1"}, "kind": {"const": "DaskJob"}}
    schema["properties"]["metadata"] = {"type": "object"}
    registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]
    for error in Draft202012Validator(schema, registry=registry).iter_errors(document):
        yield f"{error.json_path}: {error.message}"


@pytest.fixture
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text("utf-8"))
    return loaded


def test_kubernetes_manifest_is_valid(manifest: dict[str, Any]) -> None:
    assert list(problems(manifest)) == []


def _misspell(job: dict[str, Any]) -> None:
    job["containers"][0]["imagee"] = job["containers"][0].pop("image")


def _quote_a_number(job: dict[str, Any]) -> None:
    job["containers"][0]["ports"] = [{"containerPort": "8786"}]


@pytest.mark.parametrize("spoil", [_misspell, _quote_a_number])
def test_mistakes_of_a_manifest_are_found(manifest: dict[str, Any], spoil: Callable[[dict[str, Any]], None]) -> None:
    spoilt = copy.deepcopy(manifest)
    spoil(spoilt["spec"]["job"]["spec"])
    assert list(problems(spoilt))


def test_the_service_finds_the_scheduler(manifest: dict[str, Any]) -> None:
    scheduler = manifest["spec"]["cluster"]["spec"]["scheduler"]
    assert scheduler["service"]["selector"]["dask.org/cluster-name"] == manifest["metadata"]["name"]
    ports = {port["name"] for port in scheduler["spec"]["containers"][0]["ports"]}
    assert scheduler["service"]["ports"][0]["targetPort"] in ports


def test_slurm_job_starts_a_worker() -> None:
    package("dask_jobqueue")
    example = importlib.util.spec_from_file_location("slurm", EXAMPLES / "slurm.py")
    assert example is not None
    assert example.loader is not None
    module = importlib.util.module_from_spec(example)
    example.loader.exec_module(module)
    with module.cluster() as cluster:
        script = cluster.job_script()
    assert "#SBATCH --cpus-per-task=4" in script
    assert "#SBATCH -t 04:00:00" in script
    assert ". ~/.eval-keys" in script
    assert "--nthreads 4" in script
    assert "--resources CPU=4" in script
