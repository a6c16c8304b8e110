/**
 * Announces the next page in `Link`; the body stays the plain array.
 * @param parameter of the query that says where the next page begins
 */
export function linkNext(request, reply, { items, next }, parameter = 'cursor') {
    if (next !== undefined) {
        const url = new URL(request.url, 'http://host');
        url.searchParams.set(parameter, next);
        reply.header('link', `<${url.pathname}${url.search}>; rel="next"`);
    }
    return items;
}
//# sourceMappingURL=paging.js.map