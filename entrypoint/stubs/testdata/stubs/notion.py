"""The tools of the MCP server "notion" as code calls them: mcp_notion.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class ApiCreateACommentParent(TypedDict):
    # the page ID
    page_id: str


class ApiCreateACommentRichTextText(TypedDict):
    # The content of the comment
    content: str


class ApiCreateACommentRichText(TypedDict):
    text: ApiCreateACommentRichTextText


def api_create_a_comment(
    parent: ApiCreateACommentParent | str,
    rich_text: list[ApiCreateACommentRichText | str | dict[str, Any]],
) -> Any:
    """Notion | Create comment
    Error Responses:
    400: Bad request

    The server's own name of it is "API-create-a-comment".
    """
    raise NotImplementedError


class ApiCreateADataSourcePageIdParentRequest(TypedDict):
    # format "uuid"
    page_id: str


class ApiCreateADataSourceRichTextRequestText_(TypedDict):
    content: str


class ApiCreateADataSourceRichTextRequestText(ApiCreateADataSourceRichTextRequestText_, total=False):
    link: dict[str, Any] | None


class ApiCreateADataSourceRichTextRequest_(TypedDict):
    text: ApiCreateADataSourceRichTextRequestText


class ApiCreateADataSourceRichTextRequest(ApiCreateADataSourceRichTextRequest_, total=False):
    type: Literal["text"]


def api_create_a_data_source(
    parent: ApiCreateADataSourcePageIdParentRequest | str,
    properties: dict[str, Any] | str,
    title: list[ApiCreateADataSourceRichTextRequest | str | dict[str, Any]] | None = None,
) -> Any:
    """Notion | Create a data source
    Error Responses:
    400: Bad request

    The server's own name of it is "API-create-a-data-source".
    """
    raise NotImplementedError


def api_delete_a_block(block_id: str) -> Any:
    """Notion | Delete a block
    Error Responses:
    400: Bad request

    The server's own name of it is "API-delete-a-block".

    Parameters:
        block_id: Identifier for a Notion block
    """
    raise NotImplementedError


def api_get_block_children(block_id: str, start_cursor: str | None = None, page_size: int = 100) -> Any:
    """Notion | Retrieve block children
    Error Responses:
    400: Bad request

    The server's own name of it is "API-get-block-children".

    Parameters:
        block_id: Identifier for a [block](ref:block)
        start_cursor: If supplied, this endpoint will return a page of results starting after the cursor provided. If not supplied, this endpoint will return the first page of results.
        page_size: The number of items from the full list desired in the response. Maximum: 100 (format "int32")
    """
    raise NotImplementedError


def api_get_self() -> Any:
    """Notion | Retrieve your token's bot user
    Error Responses:
    400: Bad request

    The server's own name of it is "API-get-self".
    """
    raise NotImplementedError


def api_get_user(user_id: str) -> Any:
    """Notion | Retrieve a user
    Error Responses:
    400: 400

    The server's own name of it is "API-get-user".

    Parameters:
        user_id: format "uuid\"
    """
    raise NotImplementedError


def api_get_users(start_cursor: str | None = None, page_size: int = 100) -> Any:
    """Notion | List all users
    Error Responses:
    400: 400

    The server's own name of it is "API-get-users".

    Parameters:
        start_cursor: If supplied, this endpoint will return a page of results starting after the cursor provided. If not supplied, this endpoint will return the first page of results.
        page_size: The number of items from the full list desired in the response. Maximum: 100
    """
    raise NotImplementedError


def api_list_data_source_templates(
    data_source_id: str,
    start_cursor: str | None = None,
    page_size: int = 100,
) -> Any:
    """Notion | List templates in a data source
    Error Responses:
    400: Bad request

    The server's own name of it is "API-list-data-source-templates".

    Parameters:
        data_source_id: Identifier for a Notion data source
    """
    raise NotImplementedError


class ApiMovePageMovePageParentRequest(TypedDict):
    type: Literal["page_id"]
    # format "uuid"
    page_id: str


class ApiMovePageMovePageParentRequest_2(TypedDict):
    type: Literal["database_id"]
    # format "uuid"
    database_id: str


class ApiMovePageMovePageParentRequest_3(TypedDict):
    type: Literal["workspace"]


def api_move_page(
    page_id: str,
    parent: ApiMovePageMovePageParentRequest | ApiMovePageMovePageParentRequest_2 | ApiMovePageMovePageParentRequest_3 | str,
) -> Any:
    """Notion | Move a page
    Error Responses:
    400: Bad request

    The server's own name of it is "API-move-page".

    Parameters:
        page_id: Identifier for a Notion page (format "uuid")
    """
    raise NotImplementedError


class ApiPatchBlockChildrenRichTextRequestText_(TypedDict):
    content: str


class ApiPatchBlockChildrenRichTextRequestText(ApiPatchBlockChildrenRichTextRequestText_, total=False):
    link: dict[str, Any] | None


class ApiPatchBlockChildrenRichTextRequest_(TypedDict):
    text: ApiPatchBlockChildrenRichTextRequestText


class ApiPatchBlockChildrenRichTextRequest(ApiPatchBlockChildrenRichTextRequest_, total=False):
    type: Literal["text"]


class ApiPatchBlockChildrenParagraphBlockRequestParagraph(TypedDict):
    rich_text: list[ApiPatchBlockChildrenRichTextRequest]


class ApiPatchBlockChildrenParagraphBlockRequest(TypedDict, total=False):
    paragraph: ApiPatchBlockChildrenParagraphBlockRequestParagraph
    type: Literal["paragraph"]


class ApiPatchBlockChildrenBulletedListItemBlockRequestBulletedListItem(TypedDict):
    rich_text: list[ApiPatchBlockChildrenRichTextRequest]


class ApiPatchBlockChildrenBulletedListItemBlockRequest(TypedDict, total=False):
    bulleted_list_item: ApiPatchBlockChildrenBulletedListItemBlockRequestBulletedListItem
    type: Literal["bulleted_list_item"]


def api_patch_block_children(
    block_id: str,
    children: list[ApiPatchBlockChildrenParagraphBlockRequest | ApiPatchBlockChildrenBulletedListItemBlockRequest | str | dict[str, Any]],
    after: str | None = None,
) -> Any:
    """Notion | Append block children
    Error Responses:
    400: Bad request

    The server's own name of it is "API-patch-block-children".

    Parameters:
        block_id: Identifier for a [block](ref:block). Also accepts a [page](ref:page) ID.
        children: Child content to append to a container block as an array of [block objects](ref:block)
        after: The ID of the existing block that the new block should be appended after.
    """
    raise NotImplementedError


class ApiPatchPageIcon(TypedDict):
    emoji: str


class ApiPatchPageCoverExternal(TypedDict):
    url: str


class ApiPatchPageCover_(TypedDict):
    external: ApiPatchPageCoverExternal


class ApiPatchPageCover(ApiPatchPageCover_, total=False):
    type: Literal["external"]


def api_patch_page(
    page_id: str,
    properties: dict[str, Any] | str | None = None,
    in_trash: bool = False,
    archived: bool | None = None,
    icon: ApiPatchPageIcon | str | None = None,
    cover: ApiPatchPageCover | str | None = None,
) -> Any:
    """Notion | Update page properties
    Error Responses:
    400: Bad request

    The server's own name of it is "API-patch-page".

    Parameters:
        page_id: The identifier for the Notion page to be updated.
        in_trash: Set to true to delete a block. Set to false to restore a block.
    """
    raise NotImplementedError


class ApiPostPagePageIdParentRequest(TypedDict):
    # format "uuid"
    page_id: str


class ApiPostPageDataSourceIdParentRequest_(TypedDict):
    # format "uuid"
    database_id: str


class ApiPostPageDataSourceIdParentRequest(ApiPostPageDataSourceIdParentRequest_, total=False):
    type: Literal["database_id"]


class ApiPostPageParentRequest(TypedDict):
    type: Literal["workspace"]


def api_post_page(
    parent: ApiPostPagePageIdParentRequest | ApiPostPageDataSourceIdParentRequest | ApiPostPageParentRequest | str,
    properties: dict[str, Any] | str,
    children: list[str | dict[str, Any]] | None = None,
    icon: str | None = None,
    cover: str | None = None,
) -> Any:
    """Notion | Create a page
    Error Responses:
    400: Bad request

    The server's own name of it is "API-post-page".

    Parameters:
        children: The content to be rendered on the new page, represented as an array of [block objects](https://developers.notion.com/reference/block).
        icon: The icon of the new page. Either an [emoji object](https://developers.notion.com/reference/emoji-object) or an [external file object](https://developers.notion.com/reference/file-object).. (format "json")
        cover: The cover image of the new page, represented as a [file object](https://developers.notion.com/reference/file-object). (format "json")
    """
    raise NotImplementedError


class ApiPostSearchSort(TypedDict, total=False):
    # The direction to sort. Possible values include `ascending` and `descending`.
    direction: str
    # The name of the timestamp to sort against. Possible values include `last_edited_time`.
    timestamp: str


class ApiPostSearchFilter(TypedDict, total=False):
    # The value of the property to filter the results by. Possible values for object type include `page` or `data_source`. **Limitation**: Currently the only filter allowed is `object` which will filter by type of object (either `page` or `data_source`)
    value: Literal["page", "data_source"]
    # The name of the property to filter by. Currently the only property you can filter by is the object type. Possible values include `object`. Limitation: Currently the only filter allowed is `object` which will filter by type of object (either `page` or `data_source`)
    property: str


def api_post_search(
    query: str | None = None,
    sort: ApiPostSearchSort | str | None = None,
    filter: ApiPostSearchFilter | str | None = None,
    start_cursor: str | None = None,
    page_size: int = 100,
) -> Any:
    """Notion | Search by title
    Error Responses:
    400: Bad request

    The server's own name of it is "API-post-search".

    Parameters:
        query: The text that the API compares page and database titles against.
        start_cursor: A `cursor` value returned in a previous response that If supplied, limits the response to results starting after the `cursor`. If not supplied, then the first page of results is returned. Refer to [pagination](https://developers.notion.com/reference/intro#pagination) for more details.
        page_size: The number of items from the full list to include in the response. Maximum: `100`. (format "int32")
    """
    raise NotImplementedError


class ApiQueryDataSourceSortObject(TypedDict):
    property: str
    direction: Literal["ascending", "descending"]


def api_query_data_source(
    data_source_id: str,
    filter_properties: list[str | dict[str, Any]] | None = None,
    filter: dict[str, Any] | str | None = None,
    sorts: list[ApiQueryDataSourceSortObject | str | dict[str, Any]] | None = None,
    start_cursor: str | None = None,
    page_size: int = 100,
    archived: bool | None = None,
    in_trash: bool | None = None,
) -> Any:
    """Notion | Query a data source
    Error Responses:
    400: Bad request

    The server's own name of it is "API-query-data-source".

    Parameters:
        data_source_id: Identifier for a Notion data source (database)
        filter_properties: A list of page property value IDs to limit the response
    """
    raise NotImplementedError


def api_retrieve_a_block(block_id: str) -> Any:
    """Notion | Retrieve a block
    Error Responses:
    400: Bad request

    The server's own name of it is "API-retrieve-a-block".

    Parameters:
        block_id: Identifier for a Notion block
    """
    raise NotImplementedError


def api_retrieve_a_comment(
    block_id: str,
    start_cursor: str | None = None,
    page_size: int | None = None,
) -> Any:
    """Notion | Retrieve comments
    Error Responses:
    400: Bad request

    The server's own name of it is "API-retrieve-a-comment".

    Parameters:
        block_id: Identifier for a Notion block or page
        start_cursor: If supplied, this endpoint will return a page of results starting after the cursor provided. If not supplied, this endpoint will return the first page of results.
        page_size: The number of items from the full list desired in the response. Maximum: 100 (format "int32")
    """
    raise NotImplementedError


def api_retrieve_a_data_source(data_source_id: str) -> Any:
    """Notion | Retrieve a data source
    Error Responses:
    400: Bad request

    The server's own name of it is "API-retrieve-a-data-source".

    Parameters:
        data_source_id: Identifier for a Notion data source
    """
    raise NotImplementedError


def api_retrieve_a_database(database_id: str) -> Any:
    """Notion | Retrieve a database
    Error Responses:
    400: Bad request

    The server's own name of it is "API-retrieve-a-database".

    Parameters:
        database_id: Identifier for a Notion database
    """
    raise NotImplementedError


def api_retrieve_a_page(page_id: str, filter_properties: str | None = None) -> Any:
    """Notion | Retrieve a page
    Error Responses:
    400: Bad request

    The server's own name of it is "API-retrieve-a-page".

    Parameters:
        page_id: Identifier for a Notion page
        filter_properties: A list of page property value IDs associated with the page. Use this param to limit the response to a specific page property value or values. To retrieve multiple properties, specify each page property ID. For example: `?filter_properties=iAk8&filter_properties=b7dh`.
    """
    raise NotImplementedError


def api_retrieve_a_page_property(
    page_id: str,
    property_id: str,
    page_size: int | None = None,
    start_cursor: str | None = None,
) -> Any:
    """Notion | Retrieve a page property item
    Error Responses:
    400: Bad request

    The server's own name of it is "API-retrieve-a-page-property".

    Parameters:
        page_id: Identifier for a Notion page
        property_id: Identifier for a page [property](https://developers.notion.com/reference/page#all-property-values)
        page_size: For paginated properties. The max number of property item objects on a page. The default size is 100 (format "int32")
        start_cursor: For paginated properties.
    """
    raise NotImplementedError


def api_retrieve_page_markdown(page_id: str, include_transcript: bool = False) -> Any:
    """Notion | Retrieve a page as Markdown
    Error Responses:
    400: Bad request
    403: The integration lacks the read/update content capability required for this page.
    404: Page not found or not shared with the integration.
    429: Rate limited.

    The server's own name of it is "API-retrieve-page-markdown".

    Parameters:
        page_id: Identifier for a Notion page (or block) to read or update as markdown. (format "uuid")
        include_transcript: Whether to include meeting note transcripts. When false (default), a placeholder with the meeting note URL is shown instead of the full transcript.
    """
    raise NotImplementedError


def api_update_a_block(block_id: str, type: dict[str, Any] | str | None = None, archived: bool = True) -> Any:
    """Notion | Update a block
    Error Responses:
    400: Bad request

    The server's own name of it is "API-update-a-block".

    Parameters:
        block_id: Identifier for a Notion block
        archived: Set to true to archive (delete) a block. Set to false to un-archive (restore) a block.
    """
    raise NotImplementedError


class ApiUpdateADataSourceRichTextRequestText_(TypedDict):
    content: str


class ApiUpdateADataSourceRichTextRequestText(ApiUpdateADataSourceRichTextRequestText_, total=False):
    link: dict[str, Any] | None


class ApiUpdateADataSourceRichTextRequest_(TypedDict):
    text: ApiUpdateADataSourceRichTextRequestText


class ApiUpdateADataSourceRichTextRequest(ApiUpdateADataSourceRichTextRequest_, total=False):
    type: Literal["text"]


def api_update_a_data_source(
    data_source_id: str,
    title: list[ApiUpdateADataSourceRichTextRequest | str | dict[str, Any]] | None = None,
    description: list[ApiUpdateADataSourceRichTextRequest | str | dict[str, Any]] | None = None,
    properties: dict[str, Any] | str | None = None,
) -> Any:
    """Notion | Update a data source
    Error Responses:
    400: Bad request

    The server's own name of it is "API-update-a-data-source".

    Parameters:
        data_source_id: Identifier for a Notion data source
    """
    raise NotImplementedError


class ApiUpdatePageMarkdownReplaceContent_(TypedDict):
    # The complete new page content as enhanced Markdown.
    new_str: str


class ApiUpdatePageMarkdownReplaceContent(ApiUpdatePageMarkdownReplaceContent_, total=False):
    # Permit deletion of existing child pages/databases that are no longer present in the new content.
    allow_deleting_content: bool


class ApiUpdatePageMarkdownUpdateContentContentUpdates_(TypedDict):
    # Exact existing Markdown text to find.
    old_str: str
    # Replacement Markdown text.
    new_str: str


class ApiUpdatePageMarkdownUpdateContentContentUpdates(ApiUpdatePageMarkdownUpdateContentContentUpdates_, total=False):
    # Replace every occurrence of old_str instead of just the first (default false).
    replace_all_matches: bool


class ApiUpdatePageMarkdownUpdateContent_(TypedDict):
    # Up to 100 find-and-replace edits applied in order.
    content_updates: list[ApiUpdatePageMarkdownUpdateContentContentUpdates]


class ApiUpdatePageMarkdownUpdateContent(ApiUpdatePageMarkdownUpdateContent_, total=False):
    # Permit deletion of existing child pages/databases removed by the edits.
    allow_deleting_content: bool


class ApiUpdatePageMarkdownInsertContentPosition(TypedDict, total=False):
    type: Literal["start", "end"]


class ApiUpdatePageMarkdownInsertContent_(TypedDict):
    # Enhanced Markdown to insert.
    content: str


class ApiUpdatePageMarkdownInsertContent(ApiUpdatePageMarkdownInsertContent_, total=False):
    # Ellipsis-format selection ("start text...end text") to insert after. Cannot be combined with position.
    after: str
    # Insert at the start or end of the page. Cannot be combined with after.
    position: ApiUpdatePageMarkdownInsertContentPosition


class ApiUpdatePageMarkdownReplaceContentRange_(TypedDict):
    # New Markdown content for the range.
    content: str
    # Ellipsis-format selection ("start text...end text") identifying the range to replace.
    content_range: str


class ApiUpdatePageMarkdownReplaceContentRange(ApiUpdatePageMarkdownReplaceContentRange_, total=False):
    # Permit deletion of child pages/databases within the replaced range.
    allow_deleting_content: bool


def api_update_page_markdown(
    page_id: str,
    type: Literal["replace_content", "update_content", "insert_content", "replace_content_range"],
    replace_content: ApiUpdatePageMarkdownReplaceContent | str | None = None,
    update_content: ApiUpdatePageMarkdownUpdateContent | str | None = None,
    insert_content: ApiUpdatePageMarkdownInsertContent | str | None = None,
    replace_content_range: ApiUpdatePageMarkdownReplaceContentRange | str | None = None,
) -> Any:
    """Notion | Update a page's content as Markdown
    Error Responses:
    400: Bad request
    403: The integration lacks the read/update content capability required for this page.
    404: Page not found or not shared with the integration.
    409: Conflict (e.g. row limit exceeded).
    429: Rate limited.

    The server's own name of it is "API-update-page-markdown".

    Parameters:
        page_id: Identifier for a Notion page (or block) to read or update as markdown. (format "uuid")
        type: The kind of edit to apply. Prefer `replace_content` (overwrite the whole page) or `update_content` (targeted find-and-replace). `insert_content` and `replace_content_range` are deprecated.
    """
    raise NotImplementedError
