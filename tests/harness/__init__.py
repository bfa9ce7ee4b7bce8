"""What the HTTP tests share: servers, scripts, raw sockets, deadlines."""
