reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      reply "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"asker","version":"1.0.0"}}' ;;
    *'"method":"tools/list"'*)
      reply "$id" '{"tools":[{"name":"greet","description":"Greets","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"method":"tools/call"'*)
      call=$id
      printf '%s\n' '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Who is it?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}' ;;
    *'"id":900'*)
      reply "$call" '{"content":[{"type":"text","text":"Hello, you."}]}' ;;
    *'"id":'*)
      reply "$id" '{}' ;;
  esac
done
