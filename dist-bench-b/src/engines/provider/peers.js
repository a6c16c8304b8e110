/** Providers that are imported when a profile names them; the operator installs the package. */
export const PEERS = new Map([
    ['openai', { package: '@ai-sdk/openai', version: '3', factory: 'createOpenAI', keyEnv: 'OPENAI_API_KEY' }],
    [
        'anthropic',
        { package: '@ai-sdk/anthropic', version: '3', factory: 'createAnthropic', keyEnv: 'ANTHROPIC_API_KEY' },
    ],
    [
        'google',
        {
            package: '@ai-sdk/google',
            version: '3',
            factory: 'createGoogleGenerativeAI',
            keyEnv: 'GOOGLE_GENERATIVE_AI_API_KEY',
        },
    ],
    ['mistral', { package: '@ai-sdk/mistral', version: '3', factory: 'createMistral', keyEnv: 'MISTRAL_API_KEY' }],
    ['xai', { package: '@ai-sdk/xai', version: '3', factory: 'createXai', keyEnv: 'XAI_API_KEY' }],
    ['groq', { package: '@ai-sdk/groq', version: '3', factory: 'createGroq', keyEnv: 'GROQ_API_KEY' }],
    ['deepseek', { package: '@ai-sdk/deepseek', version: '2', factory: 'createDeepSeek', keyEnv: 'DEEPSEEK_API_KEY' }],
    ['cohere', { package: '@ai-sdk/cohere', version: '3', factory: 'createCohere', keyEnv: 'COHERE_API_KEY' }],
    ['azure', { package: '@ai-sdk/azure', version: '3', factory: 'createAzure' }],
    ['amazon-bedrock', { package: '@ai-sdk/amazon-bedrock', version: '4', factory: 'createAmazonBedrock' }],
]);
/** Values of `provider.id`. */
export const PROVIDER_IDS = ['demo', 'openai-compatible', ...PEERS.keys()];
//# sourceMappingURL=peers.js.map