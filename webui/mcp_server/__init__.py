"""The studio as an MCP server: tools, pictures and receipts for other programs' agents, over stdio and HTTP."""
