"""The tools of the MCP server "memory" as code calls them: mcp_memory.<tool>(name=value).

These are declarations, made from the server's own list; nothing here calls a tool. Where an event loop runs, await the call.
An optional parameter that is None isn't sent. A tool that fails raises ToolError. Where no type of a result is declared (Any),
a text that is one JSON object or array is that dict or list; any other text is a str.
"""

from __future__ import annotations

from typing import TypedDict


class AddObservationsObservations(TypedDict):
    # The name of the entity to add the observations to
    entityName: str
    # An array of observation contents to add
    contents: list[str]


class AddObservationsResultResults(TypedDict):
    entityName: str
    addedObservations: list[str]


class AddObservationsResult(TypedDict):
    results: list[AddObservationsResultResults]


def add_observations(observations: list[AddObservationsObservations]) -> AddObservationsResult:
    """Add new observations to existing entities in the knowledge graph"""
    raise NotImplementedError


class CreateEntitiesEntities(TypedDict):
    # The name of the entity
    name: str
    # The type of the entity
    entityType: str
    # An array of observation contents associated with the entity
    observations: list[str]


class CreateEntitiesResultEntities(TypedDict):
    # The name of the entity
    name: str
    # The type of the entity
    entityType: str
    # An array of observation contents associated with the entity
    observations: list[str]


class CreateEntitiesResult(TypedDict):
    entities: list[CreateEntitiesResultEntities]


def create_entities(entities: list[CreateEntitiesEntities]) -> CreateEntitiesResult:
    """Create multiple new entities in the knowledge graph"""
    raise NotImplementedError


CreateRelationsRelations = TypedDict(
    "CreateRelationsRelations",
    {
        # The name of the entity where the relation starts
        "from": "str",
        # The name of the entity where the relation ends
        "to": "str",
        # The type of the relation
        "relationType": "str",
    },
)


CreateRelationsResultRelations = TypedDict(
    "CreateRelationsResultRelations",
    {
        # The name of the entity where the relation starts
        "from": "str",
        # The name of the entity where the relation ends
        "to": "str",
        # The type of the relation
        "relationType": "str",
    },
)


class CreateRelationsResult(TypedDict):
    relations: list[CreateRelationsResultRelations]


def create_relations(relations: list[CreateRelationsRelations]) -> CreateRelationsResult:
    """Create multiple new relations between entities in the knowledge graph. Relations should be in active voice"""
    raise NotImplementedError


class DeleteEntitiesResult(TypedDict):
    success: bool
    message: str


def delete_entities(entityNames: list[str]) -> DeleteEntitiesResult:
    """Delete multiple entities and their associated relations from the knowledge graph

    Parameters:
        entityNames: An array of entity names to delete
    """
    raise NotImplementedError


class DeleteObservationsDeletions(TypedDict):
    # The name of the entity containing the observations
    entityName: str
    # An array of observations to delete
    observations: list[str]


class DeleteObservationsResult(TypedDict):
    success: bool
    message: str


def delete_observations(deletions: list[DeleteObservationsDeletions]) -> DeleteObservationsResult:
    """Delete specific observations from entities in the knowledge graph"""
    raise NotImplementedError


DeleteRelationsRelations = TypedDict(
    "DeleteRelationsRelations",
    {
        # The name of the entity where the relation starts
        "from": "str",
        # The name of the entity where the relation ends
        "to": "str",
        # The type of the relation
        "relationType": "str",
    },
)


class DeleteRelationsResult(TypedDict):
    success: bool
    message: str


def delete_relations(relations: list[DeleteRelationsRelations]) -> DeleteRelationsResult:
    """Delete multiple relations from the knowledge graph

    Parameters:
        relations: An array of relations to delete
    """
    raise NotImplementedError


class OpenNodesResultEntities(TypedDict):
    # The name of the entity
    name: str
    # The type of the entity
    entityType: str
    # An array of observation contents associated with the entity
    observations: list[str]


OpenNodesResultRelations = TypedDict(
    "OpenNodesResultRelations",
    {
        # The name of the entity where the relation starts
        "from": "str",
        # The name of the entity where the relation ends
        "to": "str",
        # The type of the relation
        "relationType": "str",
    },
)


class OpenNodesResult(TypedDict):
    entities: list[OpenNodesResultEntities]
    relations: list[OpenNodesResultRelations]


def open_nodes(names: list[str]) -> OpenNodesResult:
    """Open specific nodes in the knowledge graph by their names

    Parameters:
        names: An array of entity names to retrieve
    """
    raise NotImplementedError


class ReadGraphResultEntities(TypedDict):
    # The name of the entity
    name: str
    # The type of the entity
    entityType: str
    # An array of observation contents associated with the entity
    observations: list[str]


ReadGraphResultRelations = TypedDict(
    "ReadGraphResultRelations",
    {
        # The name of the entity where the relation starts
        "from": "str",
        # The name of the entity where the relation ends
        "to": "str",
        # The type of the relation
        "relationType": "str",
    },
)


class ReadGraphResult(TypedDict):
    entities: list[ReadGraphResultEntities]
    relations: list[ReadGraphResultRelations]


def read_graph() -> ReadGraphResult:
    """Read the entire knowledge graph"""
    raise NotImplementedError


class SearchNodesResultEntities(TypedDict):
    # The name of the entity
    name: str
    # The type of the entity
    entityType: str
    # An array of observation contents associated with the entity
    observations: list[str]


SearchNodesResultRelations = TypedDict(
    "SearchNodesResultRelations",
    {
        # The name of the entity where the relation starts
        "from": "str",
        # The name of the entity where the relation ends
        "to": "str",
        # The type of the relation
        "relationType": "str",
    },
)


class SearchNodesResult(TypedDict):
    entities: list[SearchNodesResultEntities]
    relations: list[SearchNodesResultRelations]


def search_nodes(query: str) -> SearchNodesResult:
    """Search for nodes in the knowledge graph based on a query

    Parameters:
        query: The search query to match against entity names, types, and observation content
    """
    raise NotImplementedError
