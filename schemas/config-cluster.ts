import { Type } from '@sinclair/typebox'
import { Certificate, Ms, Secret, Section } from './config-parts.js'

const NodeSecret = Secret({ minLength: 32 })

export const clusterSection = Section(
  {
    node: Type.String({
      pattern: '^[A-Za-z0-9._-]{1,64}$',
      description: 'Name of this node, the same over its restarts and unlike that of every other node.',
    }),
    url: Type.String({
      pattern: '^https?://[^/?#@]+/?$',
      description: 'Where the other nodes reach `listen`: scheme, host and port, as http://10.0.0.5:8788.',
    }),
    listen: Section(
      {
        host: Type.String({ minLength: 1, description: 'An address that the other nodes reach, and clients do not.' }),
        port: Type.Integer({ minimum: 0, maximum: 65535, description: 'Not that of `listen` at the top.' }),
      },
      { description: 'Where this node listens for the other nodes.' },
    ),
    secret: Type.Union([NodeSecret, Type.Array(NodeSecret, { minItems: 1, maxItems: 2 })], {
      description:
        'By which nodes know each other, the same at all of them: 32 characters at least. Two while rotating.',
    }),
    tls: Type.Optional(
      Section(
        {
          cert: Certificate({ description: 'PEM: certificate of this node, for the host of `url`, signed by `ca`.' }),
          key: Secret({ description: 'PEM: its private key.' }),
          ca: Certificate({ description: 'PEM: who signs the certificates of all nodes, and of nobody else.' }),
        },
        {
          description:
            'Encrypts what nodes say to each other, and lets only holders of such certificates say anything. `url` is https then.',
        },
      ),
    ),
    leaseMs: Type.Optional(
      Ms(
        { default: 10_000, description: 'A node that is not heard of for so long is dead, and others take over.' },
        2000,
      ),
    ),
    agentState: Type.Optional(
      Type.Union([Type.Literal('node'), Type.Literal('shared'), Type.Literal('copied')], {
        default: 'node',
        description:
          'Where command-line agents keep what was said: "node", on each node\'s own disk; "shared", in the same directories everywhere; "copied", on each node\'s own disk, and in the storage for the other nodes.',
      }),
    ),
  },
  {
    description:
      'Makes this gateway one of several nodes behind a load balancer, on one storage.postgres: they serve the same sessions, jobs and profiles.',
  },
)
