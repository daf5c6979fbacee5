"""The tools of the MCP server "git" as code calls them: mcp_git.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any


def git_add(repo_path: str, files: list[str]) -> Any:
    """Adds file contents to the staging area

    Parameters:
        files: minItems 1
    """
    raise NotImplementedError


def git_branch(
    repo_path: str,
    branch_type: str,
    contains: str | None = None,
    not_contains: str | None = None,
) -> Any:
    """List Git branches

    Parameters:
        repo_path: The path to the Git repository.
        branch_type: Whether to list local branches ('local'), remote branches ('remote') or all branches('all').
        contains: The commit sha that branch should contain. Do not pass anything to this param if no commit sha is specified
        not_contains: The commit sha that branch should NOT contain. Do not pass anything to this param if no commit sha is specified
    """
    raise NotImplementedError


def git_checkout(repo_path: str, branch_name: str) -> Any:
    """Switches branches"""
    raise NotImplementedError


def git_commit(repo_path: str, message: str) -> Any:
    """Records changes to the repository"""
    raise NotImplementedError


def git_create_branch(repo_path: str, branch_name: str, base_branch: str | None = None) -> Any:
    """Creates a new branch from an optional base branch"""
    raise NotImplementedError


def git_diff(repo_path: str, target: str, context_lines: int = 3) -> Any:
    """Shows differences between branches or commits"""
    raise NotImplementedError


def git_diff_staged(repo_path: str, context_lines: int = 3) -> Any:
    """Shows changes that are staged for commit"""
    raise NotImplementedError


def git_diff_unstaged(repo_path: str, context_lines: int = 3) -> Any:
    """Shows changes in the working directory that are not yet staged"""
    raise NotImplementedError


def git_log(
    repo_path: str,
    max_count: int = 10,
    start_timestamp: str | None = None,
    end_timestamp: str | None = None,
) -> Any:
    """Shows the commit logs

    Parameters:
        start_timestamp: Start timestamp for filtering commits. Accepts: ISO 8601 format (e.g., '2024-01-15T14:30:25'), relative dates (e.g., '2 weeks ago', 'yesterday'), or absolute dates (e.g., '2024-01-15', 'Jan 15 2024')
        end_timestamp: End timestamp for filtering commits. Accepts: ISO 8601 format (e.g., '2024-01-15T14:30:25'), relative dates (e.g., '2 weeks ago', 'yesterday'), or absolute dates (e.g., '2024-01-15', 'Jan 15 2024')
    """
    raise NotImplementedError


def git_reset(repo_path: str) -> Any:
    """Unstages all staged changes"""
    raise NotImplementedError


def git_show(repo_path: str, revision: str) -> Any:
    """Shows the contents of a commit, or of a file or directory given as <revision>:<path>"""
    raise NotImplementedError


def git_status(repo_path: str) -> Any:
    """Shows the working tree status"""
    raise NotImplementedError
