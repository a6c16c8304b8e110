export function ownOrigins({ options }) {
    const { publicUrl } = options.notifications ?? {};
    const known = publicUrl !== undefined && URL.canParse(publicUrl) ? new URL(publicUrl).origin : undefined;
    return ({ headers: { origin, host } }) => origin !== undefined && (origin === known || isOwn(origin, host));
}
/** `null`, and what is no web origin, is nobody's. */
function isOwn(origin, host) {
    const url = URL.canParse(origin) ? new URL(origin) : undefined;
    if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || host === undefined)
        return false;
    const own = `${url.protocol}//${host}`;
    return URL.canParse(own) && new URL(own).host === url.host && url.origin === origin.toLowerCase();
}
//# sourceMappingURL=origins.js.map