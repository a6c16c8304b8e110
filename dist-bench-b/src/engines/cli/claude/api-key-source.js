/** Where a token comes from when it is a subscription's. */
const OAUTH_TOKENS = new Set(['CLAUDE_CODE_OAUTH_TOKEN', 'claude.ai']);
/**
 * Where the credential of a session comes from. The agent itself says `none` for every login; the account tells which it is.
 * @returns `oauth`, or the name of the variable, helper or cloud provider; `none` without a credential
 */
export function apiKeySourceOf(account = {}, reported) {
    for (const source of [reported, account.apiKeySource])
        if (source && source !== 'none')
            return source;
    if (account.apiProvider && account.apiProvider !== 'firstParty')
        return account.apiProvider;
    if (account.subscriptionType || OAUTH_TOKENS.has(account.tokenSource ?? ''))
        return 'oauth';
    return account.tokenSource === 'ANTHROPIC_AUTH_TOKEN' ? 'auth_token' : 'none';
}
//# sourceMappingURL=api-key-source.js.map