import { runFolders } from './many.mjs'

await runFolders(['lib', 'sessions', 'executions', 'notifications', 'webhooks', 'jobs'])
