const markdown = (directory) => ({ directory, extension: '.md' });
const toml = (directory) => ({ directory, extension: '.toml' });
/** @param folder of the config home */
const opencodeSources = (folder) => ({
    settings: { path: `${folder}/${folder}.json`, format: 'json', model: 'model', rules: 'permission' },
    memory: `${folder}/AGENTS.md`,
    skills: [`${folder}/skills`, `${folder}/skill`],
    agents: [markdown(`${folder}/agents`), markdown(`${folder}/agent`)],
    commands: [markdown(`${folder}/commands`), markdown(`${folder}/command`)],
});
/** By agent. */
export const SNAPSHOT_SOURCES = {
    claude: {
        settings: {
            path: 'settings.json',
            format: 'json',
            model: 'model',
            permissionMode: 'permissions.defaultMode',
            rules: { allow: 'permissions.allow', ask: 'permissions.ask', deny: 'permissions.deny' },
            env: 'env',
            hooks: 'hooks',
        },
        memory: 'CLAUDE.md',
        skills: ['skills'],
        agents: [markdown('agents')],
        commands: [markdown('commands')],
    },
    opencode: opencodeSources('opencode'),
    kilo: opencodeSources('kilo'),
    gemini: {
        settings: {
            path: '.gemini/settings.json',
            format: 'json',
            model: 'model.name',
            permissionMode: 'general.defaultApprovalMode',
            hooks: 'hooks',
        },
        memory: '.gemini/GEMINI.md',
        skills: ['.gemini/skills'],
        agents: [markdown('.gemini/agents')],
        commands: [toml('.gemini/commands')],
    },
    codex: {
        settings: { path: 'config.toml', format: 'toml', model: 'model', permissionMode: 'approval_policy' },
        memory: 'AGENTS.md',
        skills: ['skills'],
        agents: [toml('agents')],
        commands: [markdown('prompts')],
    },
    qwen: {
        settings: {
            path: 'settings.json',
            format: 'json',
            model: 'model.name',
            permissionMode: 'tools.approvalMode',
            env: 'env',
            hooks: 'hooks',
        },
        memory: 'QWEN.md',
        skills: ['skills'],
        agents: [markdown('agents')],
        commands: [markdown('commands'), toml('commands')],
    },
};
//# sourceMappingURL=snapshot-sources.js.map