/** A provider that lives in a package of its own. */
export interface Peer {
  package: string
  /** The major version that speaks the language of `ai@6`. */
  version: string
  factory: string
  /** Read when the profile names no variable. Absent: the package finds its credentials itself. */
  keyEnv?: string
  /** Hands over an image in the result of a tool; the packages of the others, which have no place for it, would write it out as text. */
  takesImages?: true
  /** Its models read of what they thought only what they have sealed. */
  sealsThinking?: true
}

/** Providers that are imported when a profile names them; the operator installs the package. */
export const PEERS: ReadonlyMap<string, Peer> = new Map([
  [
    'openai',
    {
      ...{ package: '@ai-sdk/openai', version: '3', factory: 'createOpenAI', keyEnv: 'OPENAI_API_KEY' },
      takesImages: true,
      sealsThinking: true,
    },
  ],
  [
    'anthropic',
    {
      ...{ package: '@ai-sdk/anthropic', version: '3', factory: 'createAnthropic', keyEnv: 'ANTHROPIC_API_KEY' },
      takesImages: true,
    },
  ],
  [
    'google',
    {
      package: '@ai-sdk/google',
      version: '3',
      factory: 'createGoogleGenerativeAI',
      keyEnv: 'GOOGLE_GENERATIVE_AI_API_KEY',
      takesImages: true,
      sealsThinking: true,
    },
  ],
  ['mistral', { package: '@ai-sdk/mistral', version: '3', factory: 'createMistral', keyEnv: 'MISTRAL_API_KEY' }],
  ['xai', { package: '@ai-sdk/xai', version: '3', factory: 'createXai', keyEnv: 'XAI_API_KEY' }],
  ['groq', { package: '@ai-sdk/groq', version: '3', factory: 'createGroq', keyEnv: 'GROQ_API_KEY' }],
  ['deepseek', { package: '@ai-sdk/deepseek', version: '2', factory: 'createDeepSeek', keyEnv: 'DEEPSEEK_API_KEY' }],
  ['cohere', { package: '@ai-sdk/cohere', version: '3', factory: 'createCohere', keyEnv: 'COHERE_API_KEY' }],
  ['azure', { package: '@ai-sdk/azure', version: '3', factory: 'createAzure', takesImages: true, sealsThinking: true }],
  [
    'amazon-bedrock',
    {
      package: '@ai-sdk/amazon-bedrock',
      version: '4',
      factory: 'createAmazonBedrock',
      takesImages: true,
      sealsThinking: true,
    },
  ],
])

/** Values of `provider.id`. */
export const PROVIDER_IDS: readonly string[] = ['demo', 'openai-compatible', ...PEERS.keys()]
