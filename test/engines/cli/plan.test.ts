import t from 'tap'
import type { MessageBlock } from '../../../schemas/events.js'
import { ClaudePlan } from '../../../src/engines/cli/claude/plan.js'

let calls = 0
/** A call and its answer. @returns the plan, when it has changed */
function take(plan: ClaudePlan, name: string, input: object, answer: unknown, is_error = false) {
  const id = `call_${++calls}`
  plan.read([{ type: 'tool_use', id, name, input }])
  return plan.read([{ type: 'tool_result', tool_use_id: id, content: answer, is_error } as MessageBlock])
}

t.test('claude’s tasks are told as one plan, also by the process that goes on with them', (t) => {
  const first = new ClaudePlan()
  t.strictSame(take(first, 'TaskCreate', { subject: 'look' }, 'Task #1 created successfully: look'), [
    { content: 'look', status: 'pending' },
  ])
  take(first, 'TaskCreate', { subject: 'do' }, [{ type: 'text', text: 'Task #2 created successfully: do' }])
  const plan = new ClaudePlan(JSON.parse(JSON.stringify(first.state.plan)))
  t.strictSame(take(plan, 'TaskUpdate', { taskId: '1', status: 'in_progress' }, 'Updated task #1 status'), [
    { content: 'look', status: 'in_progress' },
    { content: 'do', status: 'pending' },
  ])
  t.strictSame(take(plan, 'TaskUpdate', { taskId: '1', status: 'deleted' }, 'Updated'), [
    { content: 'do', status: 'pending' },
  ])
  t.equal(take(plan, 'TaskUpdate', { taskId: '2', status: 'completed' }, 'no', true), undefined, 'it did not happen')
  t.equal(take(plan, 'Bash', { command: 'ls' }, 'a'), undefined)
  t.strictSame(take(plan, 'TaskList', {}, '#2 [completed] do\n#3 [pending] rest'), [
    { content: 'do', status: 'completed' },
    { content: 'rest', status: 'pending' },
  ])
  t.strictSame(new ClaudePlan().state, {})
  t.end()
})

t.test('a list that claude writes whole is the plan once it is written', (t) => {
  const todos = [{ content: 'look', status: 'in_progress', activeForm: 'Looking' }]
  t.strictSame(take(new ClaudePlan(), 'TodoWrite', { todos }, 'Todos have been modified'), [
    { content: 'look', status: 'in_progress' },
  ])
  t.equal(take(new ClaudePlan(), 'TodoWrite', { todos }, 'No such tool', true), undefined)
  t.end()
})
