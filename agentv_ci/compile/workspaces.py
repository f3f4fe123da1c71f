"""Compile workspaces: folders to digests, refs to commits, files to their contents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentv_ci.compile.references import Files
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.plan import FileReference, PlanCommit, PlanFolder, PlanWorkspace
from agentv_ci.contracts.source import NOWHERE, Source, diagnostic_at, normal, relative
from agentv_ci.contracts.workspaces import EMPTY, FileSource, GitSource, Workspace
from agentv_ci.errors import InvalidInput
from agentv_ci.workspaces.git_refs import commit_of, is_url
from agentv_ci.workspaces.trees import digest_of_files, files_in


class WorkspaceCompiler:
    """Compiles the workspaces of one eval file; folders are read once."""

    def __init__(self, source: Source, files: Files) -> None:
        self._source = source
        self._files = files
        self._folders: dict[tuple[str, tuple[str, ...], tuple[str, ...]], PlanFolder] = {}

    def compile(self, workspace: Workspace | None) -> PlanWorkspace | None:
        """Return a workspace of the plan; raises InvalidInput if what it is made of changed since it was checked."""
        if workspace is None:
            return None
        origin = workspace.from_
        return PlanWorkspace(
            folder=self._folder(workspace) if isinstance(origin, str) and origin != EMPTY else None,
            commit=self._commit(origin) if isinstance(origin, GitSource) else None,
            include=workspace.include or (),
            exclude=workspace.exclude or (),
            patch=self._files.add(self._source, workspace.patch) if workspace.patch else None,
            files=self.contents(workspace.files or {}),
            setup=workspace.setup or (),
            submit=workspace.submit or (),
            submit_guarded=workspace.submit_guarded or (),
            isolation=workspace.isolation,
            network=workspace.network,
            image=workspace.image,
            visible=tuple(map(self._visible, workspace.visible or ())),
            limits=workspace.limits,
        )

    def contents(self, files: Mapping[str, str | FileSource]) -> dict[str, FileReference]:
        """Return path → file of the plan; a text becomes a file of its own."""
        return {
            path: self._files.add(self._source, each.file)
            if isinstance(each, FileSource)
            else self._files.add_text(path, each)
            for path, each in files.items()
        }

    def _folder(self, workspace: Workspace) -> PlanFolder:
        assert isinstance(workspace.from_, str)
        key = workspace.from_, workspace.include or (), workspace.exclude or ()
        if key not in self._folders:
            folder = self._source.resolve(workspace.from_)
            try:
                sha256 = digest_of_files(folder, files_in(folder, *key[1:]))
            except OSError as error:
                raise self._changed(f"'{folder}' cannot be read: {error.strerror}") from error
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

    def _visible(self, path: str) -> str:
        return path if path.startswith(("/", "~")) else relative(normal(self._place / path), self._source.root)

    @property
    def _place(self) -> Path:
        return self._source.path.parent

    def _changed(self, message: str) -> InvalidInput:
        found: Diagnostic = diagnostic_at(NOWHERE, "AV362", message, self._source.path)
        return InvalidInput([found])
