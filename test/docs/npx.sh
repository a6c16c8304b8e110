# `npx` as a reader of the documentation has it: `session-gateway` is this checkout's, compiled.
name=$1
shift
case "$name ${1-}" in
  'openapi-typescript '*) exec "$DOCS_BIN/openapi-typescript" "$@" ;;
  'session-gateway ' | 'session-gateway --config') exec node "$DOCS_HERE/npx.mjs" "$@" ;;
  'session-gateway '*) exec node "$DOCS_PACKAGE/bin/session-gateway.js" "$@" ;;
esac
echo "npx $name is not what a page may run" >&2
exit 1
