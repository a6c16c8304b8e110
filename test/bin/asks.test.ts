import t from 'tap'
import { Asks } from '../../bin/terminal/asks.js'
import type { Keys } from '../../bin/terminal/keys.js'
import type { Answer, PermissionRequest, Session } from '../../client/index.js'

t.test('what only looks like a question is never answered without a person', async (t) => {
  const unreadable = [
    [],
    [null],
    [{ question: 'Which?' }],
    [{ question: 'Which?', options: [null] }],
    [{ question: 'Which?', options: [{}] }],
    [{ question: 'Which?', options: [{ label: 'This' }] }, { options: [] }],
  ]
  for (const questions of unreadable) {
    const pressed: string[] = []
    const answered = new Promise<Answer>((resolve) => {
      const session = { answer: async (_id: string, answer: Answer) => resolve(answer) }
      const keys: Pick<Keys, 'oneOf'> = {
        oneOf: async (offered, _signal, { ask, offer }) => {
          ask()
          offer()
          pressed.push(...offered)
          return 'n'
        },
      }
      const request = { id: 'r1', toolUseId: 'u1', toolName: 'AskUserQuestion', input: { command: 'rm', questions } }
      new Asks(session as unknown as Session, keys as Keys).add(request as PermissionRequest)
    })
    t.match(await answered, { behavior: 'deny', message: 'The user said no.' }, JSON.stringify(questions))
    t.strictSame(
      pressed.filter((key) => key !== 'v'),
      ['y', 'n', 's'],
    )
  }
})

t.test('all of it is offered where some of it is hidden, not for a blank at its end', async (t) => {
  const offeredFor = (description: string) =>
    new Promise<readonly string[]>((resolve) => {
      const keys: Pick<Keys, 'oneOf'> = {
        oneOf: async (offered) => {
          resolve(offered)
          return 'n'
        },
      }
      const request = { id: 'r1', toolUseId: 'u1', toolName: 'Bash', input: { command: 'make test' }, description }
      new Asks({ answer: async () => {} } as unknown as Session, keys as Keys).add(request as PermissionRequest)
    })
  t.strictSame(await offeredFor('Runs the tests.\n'), ['y', 'n', 's'])
  t.strictSame(await offeredFor('Runs the tests. '.repeat(20)), ['y', 'n', 's', 'v'])
})
