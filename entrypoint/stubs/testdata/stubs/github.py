"""The tools of the MCP server "github" as code calls them: mcp_github.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


def add_issue_comment(owner: str, repo: str, issue_number: float, body: str) -> Any:
    """Add a comment to an existing issue"""
    raise NotImplementedError


def create_branch(owner: str, repo: str, branch: str, from_branch: str | None = None) -> Any:
    """Create a new branch in a GitHub repository

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        branch: Name for the new branch
        from_branch: Optional: source branch to create from (defaults to the repository's default branch)
    """
    raise NotImplementedError


def create_issue(
    owner: str,
    repo: str,
    title: str,
    body: str | None = None,
    assignees: list[str] | None = None,
    milestone: float | None = None,
    labels: list[str] | None = None,
) -> Any:
    """Create a new issue in a GitHub repository"""
    raise NotImplementedError


def create_or_update_file(
    owner: str,
    repo: str,
    path: str,
    content: str,
    message: str,
    branch: str,
    sha: str | None = None,
) -> Any:
    """Create or update a single file in a GitHub repository

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        path: Path where to create/update the file
        content: Content of the file
        message: Commit message
        branch: Branch to create/update the file in
        sha: SHA of the file being replaced (required when updating existing files)
    """
    raise NotImplementedError


def create_pull_request(
    owner: str,
    repo: str,
    title: str,
    head: str,
    base: str,
    body: str | None = None,
    draft: bool | None = None,
    maintainer_can_modify: bool | None = None,
) -> Any:
    """Create a new pull request in a GitHub repository

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        title: Pull request title
        head: The name of the branch where your changes are implemented
        base: The name of the branch you want the changes pulled into
        body: Pull request body/description
        draft: Whether to create the pull request as a draft
        maintainer_can_modify: Whether maintainers can modify the pull request
    """
    raise NotImplementedError


class CreatePullRequestReviewComments(TypedDict):
    # The relative path to the file being commented on
    path: str
    # The position in the diff where you want to add a review comment
    position: float
    # Text of the review comment
    body: str


class CreatePullRequestReviewComments_2(TypedDict):
    # The relative path to the file being commented on
    path: str
    # The line number in the file where you want to add a review comment
    line: float
    # Text of the review comment
    body: str


def create_pull_request_review(
    owner: str,
    repo: str,
    pull_number: float,
    body: str,
    event: Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"],
    commit_id: str | None = None,
    comments: list[CreatePullRequestReviewComments | CreatePullRequestReviewComments_2] | None = None,
) -> Any:
    """Create a review on a pull request

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        pull_number: Pull request number
        body: The body text of the review
        event: The review action to perform
        commit_id: The SHA of the commit that needs a review
        comments: Comments to post as part of the review (specify either position or line, not both)
    """
    raise NotImplementedError


def create_repository(
    name: str,
    description: str | None = None,
    private: bool | None = None,
    autoInit: bool | None = None,
) -> Any:
    """Create a new GitHub repository in your account

    Parameters:
        name: Repository name
        description: Repository description
        private: Whether the repository should be private
        autoInit: Initialize with README.md
    """
    raise NotImplementedError


def fork_repository(owner: str, repo: str, organization: str | None = None) -> Any:
    """Fork a GitHub repository to your account or specified organization

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        organization: Optional: organization to fork to (defaults to your personal account)
    """
    raise NotImplementedError


def get_file_contents(owner: str, repo: str, path: str, branch: str | None = None) -> Any:
    """Get the contents of a file or directory from a GitHub repository

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        path: Path to the file or directory
        branch: Branch to get contents from
    """
    raise NotImplementedError


def get_issue(owner: str, repo: str, issue_number: float) -> Any:
    """Get details of a specific issue in a GitHub repository."""
    raise NotImplementedError


def get_pull_request(owner: str, repo: str, pull_number: float) -> Any:
    """Get details of a specific pull request

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        pull_number: Pull request number
    """
    raise NotImplementedError


def get_pull_request_comments(owner: str, repo: str, pull_number: float) -> Any:
    """Get the review comments on a pull request

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        pull_number: Pull request number
    """
    raise NotImplementedError


def get_pull_request_files(owner: str, repo: str, pull_number: float) -> Any:
    """Get the list of files changed in a pull request

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        pull_number: Pull request number
    """
    raise NotImplementedError


def get_pull_request_reviews(owner: str, repo: str, pull_number: float) -> Any:
    """Get the reviews on a pull request

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        pull_number: Pull request number
    """
    raise NotImplementedError


def get_pull_request_status(owner: str, repo: str, pull_number: float) -> Any:
    """Get the combined status of all status checks for a pull request

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        pull_number: Pull request number
    """
    raise NotImplementedError


def list_commits(
    owner: str,
    repo: str,
    sha: str | None = None,
    page: float | None = None,
    perPage: float | None = None,
) -> Any:
    """Get list of commits of a branch in a GitHub repository"""
    raise NotImplementedError


def list_issues(
    owner: str,
    repo: str,
    direction: Literal["asc", "desc"] | None = None,
    labels: list[str] | None = None,
    page: float | None = None,
    per_page: float | None = None,
    since: str | None = None,
    sort: Literal["created", "updated", "comments"] | None = None,
    state: Literal["open", "closed", "all"] | None = None,
) -> Any:
    """List issues in a GitHub repository with filtering options"""
    raise NotImplementedError


def list_pull_requests(
    owner: str,
    repo: str,
    state: Literal["open", "closed", "all"] | None = None,
    head: str | None = None,
    base: str | None = None,
    sort: Literal["created", "updated", "popularity", "long-running"] | None = None,
    direction: Literal["asc", "desc"] | None = None,
    per_page: float | None = None,
    page: float | None = None,
) -> Any:
    """List and filter repository pull requests

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        state: State of the pull requests to return
        head: Filter by head user or head organization and branch name
        base: Filter by base branch name
        sort: What to sort results by
        direction: The direction of the sort
        per_page: Results per page (max 100)
        page: Page number of the results
    """
    raise NotImplementedError


def merge_pull_request(
    owner: str,
    repo: str,
    pull_number: float,
    commit_title: str | None = None,
    commit_message: str | None = None,
    merge_method: Literal["merge", "squash", "rebase"] | None = None,
) -> Any:
    """Merge a pull request

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        pull_number: Pull request number
        commit_title: Title for the automatic commit message
        commit_message: Extra detail to append to automatic commit message
        merge_method: Merge method to use
    """
    raise NotImplementedError


class PushFilesFiles(TypedDict):
    path: str
    content: str


def push_files(owner: str, repo: str, branch: str, files: list[PushFilesFiles], message: str) -> Any:
    """Push multiple files to a GitHub repository in a single commit

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        branch: Branch to push to (e.g., 'main' or 'master')
        files: Array of files to push
        message: Commit message
    """
    raise NotImplementedError


def search_code(
    q: str,
    order: Literal["asc", "desc"] | None = None,
    page: float | None = None,
    per_page: float | None = None,
) -> Any:
    """Search for code across GitHub repositories

    Parameters:
        page: minimum 1
        per_page: minimum 1, maximum 100
    """
    raise NotImplementedError


def search_issues(
    q: str,
    order: Literal["asc", "desc"] | None = None,
    page: float | None = None,
    per_page: float | None = None,
    sort: Literal["comments", "reactions", "reactions-+1", "reactions--1", "reactions-smile", "reactions-thinking_face", "reactions-heart", "reactions-tada", "interactions", "created", "updated"] | None = None,
) -> Any:
    """Search for issues and pull requests across GitHub repositories

    Parameters:
        page: minimum 1
        per_page: minimum 1, maximum 100
    """
    raise NotImplementedError


def search_repositories(query: str, page: float | None = None, perPage: float | None = None) -> Any:
    """Search for GitHub repositories

    Parameters:
        query: Search query (see GitHub search syntax)
        page: Page number for pagination (default: 1)
        perPage: Number of results per page (default: 30, max: 100)
    """
    raise NotImplementedError


def search_users(
    q: str,
    order: Literal["asc", "desc"] | None = None,
    page: float | None = None,
    per_page: float | None = None,
    sort: Literal["followers", "repositories", "joined"] | None = None,
) -> Any:
    """Search for users on GitHub

    Parameters:
        page: minimum 1
        per_page: minimum 1, maximum 100
    """
    raise NotImplementedError


def update_issue(
    owner: str,
    repo: str,
    issue_number: float,
    title: str | None = None,
    body: str | None = None,
    assignees: list[str] | None = None,
    milestone: float | None = None,
    labels: list[str] | None = None,
    state: Literal["open", "closed"] | None = None,
) -> Any:
    """Update an existing issue in a GitHub repository"""
    raise NotImplementedError


def update_pull_request_branch(
    owner: str,
    repo: str,
    pull_number: float,
    expected_head_sha: str | None = None,
) -> Any:
    """Update a pull request branch with the latest changes from the base branch

    Parameters:
        owner: Repository owner (username or organization)
        repo: Repository name
        pull_number: Pull request number
        expected_head_sha: The expected SHA of the pull request's HEAD ref
    """
    raise NotImplementedError
