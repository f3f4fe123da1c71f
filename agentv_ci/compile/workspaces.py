"""Compile workspaces: folders to digests, refs to commits, files to their contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentv_ci.compile.references import Files
from agentv_ci.contracts.attachments import LFS_POINTER
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.plan_parts import FileReference, PlanCommit, PlanFolder, PlanWorkspace
from agentv_ci.contracts.source import NOWHERE, Source, diagnostic_at, normal, relative
from agentv_ci.contracts.workspaces import (
    EMPTY,
    FileSource,
    GitSource,
    TargetWorkspace,
    Workspace,
    for_agent,
)
from agentv_ci.errors import InvalidInput
from agentv_ci.workspaces.git_refs import commit_of, is_url
from agentv_ci.workspaces.trees import digest_of_files, files_in, lfs_pointer_in


class WorkspaceCompiler:
    """Compiles the workspaces of one eval file; folders are read once."""

    def __init__(self, source: Source, files: Files, targets: Source) -> None:
        self._source = source
        self._targets = targets
        self._files = files
        self._folders: dict[tuple[str, tuple[str, ...], tuple[str, ...]], PlanFolder] = {}

    def compile(self, own: Workspace | None, agent: TargetWorkspace | None) -> PlanWorkspace | None:
        """Return the workspace in which a target answers a case; None if neither of them has one.

        Raises InvalidInput if what it is made of changed since it was checked.
        """
        workspace = for_agent(own, agent)
        if workspace is None:
            return None
        origin = workspace.from_
        return PlanWorkspace(
            folder=self._folder(workspace) if isinstance(origin, str) and origin != EMPTY else None,
            commit=self._commit(origin) if isinstance(origin, GitSource) else None,
            include=workspace.include or (),
            exclude=workspace.exclude or (),
            patch=self._files.add(self._source, workspace.patch) if workspace.patch else None,
            files={**self._of_agent(agent), **self.contents(workspace.files or {})},
            setup=workspace.setup or (),
            submit=workspace.submit or (),
            submit_guarded=workspace.submit_guarded or (),
            isolation=workspace.isolation,
            network=workspace.network,
            image=workspace.image,
            visible=self._visible(workspace, agent),
            limits=workspace.limits,
        )

    def contents(self, files: Mapping[str, str | FileSource]) -> dict[str, FileReference]:
        """Return path → file of the plan; a text becomes a file of its own."""
        return self._contents(files, self._source)

    def _of_agent(self, agent: TargetWorkspace | None) -> dict[str, FileReference]:
        files = agent.files if agent is not None else None
        return self._contents(files or {}, self._targets)

    def _contents(
        self, files: Mapping[str, str | FileSource], source: Source
    ) -> dict[str, FileReference]:
        contents: dict[str, FileReference] = {}
        for path, content in files.items():
            if isinstance(content, FileSource):
                contents[path] = self._files.add(source, content.file)
            else:
                contents[path] = self._files.add_text(path, content)
        return contents

    def _folder(self, workspace: Workspace) -> PlanFolder:
        assert isinstance(workspace.from_, str)
        key = workspace.from_, workspace.include or (), workspace.exclude or ()
        if key not in self._folders:
            folder = self._source.resolve(workspace.from_)
            try:
                chosen = files_in(folder, *key[1:])
                sha256 = digest_of_files(folder, chosen)
                replaced = workspace.files or {}
                pointer = lfs_pointer_in(folder, [path for path in chosen if path not in replaced])
            except OSError as error:
                raise self._changed(f"'{folder}' cannot be read: {error.strerror}") from error
            if pointer is not None:
                raise self._changed(
                    f"'{folder / pointer}' is {LFS_POINTER}, or leave it out with 'exclude'"
                )
            self._folders[key] = PlanFolder(path=relative(folder, self._source.root), sha256=sha256)
        return self._folders[key]

    def _commit(self, origin: GitSource) -> PlanCommit:
        if is_url(origin.git):
            return PlanCommit(git=origin.git, commit=origin.ref)
        repository = self._source.resolve(origin.git)
        commit = commit_of(repository, origin.ref)
        if commit is None:
            raise self._changed(f"'{repository}' has no '{origin.ref}'")
        return PlanCommit(git=relative(repository, self._source.root), commit=commit)

    def _visible(self, workspace: Workspace, agent: TargetWorkspace | None) -> tuple[str, ...]:
        own = _from_root(workspace.visible or (), self._source)
        named = agent.visible if agent is not None else None
        others = _from_root(named or (), self._targets)
        return tuple(dict.fromkeys((*others, *own)))

    def _changed(self, message: str) -> InvalidInput:
        found: Diagnostic = diagnostic_at(NOWHERE, "AV362", message, self._source.path)
        return InvalidInput([found])


def _from_root(paths: Iterable[str], source: Source) -> Iterator[str]:
    """Yield paths of a document, relative to its folder, as relative to the repository."""
    for path in paths:
        is_absolute = path.startswith(("/", "~"))
        yield path if is_absolute else relative(normal(source.path.parent / path), source.root)
