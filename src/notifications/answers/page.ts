import { createHash } from 'node:crypto'
import type { ResolvePermissionRequest } from '../../../schemas/permissions.js'
import { escaped } from '../../lib/html.js'
import { shown } from '../shown.js'
import { fieldsOf, MAX_WRITTEN, type Question, questionsOf } from './answer-form.js'
import type { AnswerView, OpenRequest, Resolved } from './answer-links.js'
import { DONE, whoWasFirst } from './who-was-first.js'

const STYLE = `
:root { color-scheme: light dark; --line: #8886; --soft: #8882 }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 44rem; padding: 1rem 1rem 3rem; font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.35rem; line-height: 1.25; margin: .5rem 0 1rem }
h2 { font-size: 1rem; margin: 1.5rem 0 .4rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem .9rem; margin: 0 }
dt { opacity: .7 }
dd { margin: 0 }
pre { margin: 0; padding: .8rem; background: var(--soft); border-radius: .5rem; white-space: pre-wrap; font: .875rem/1.4 ui-monospace, monospace }
fieldset { border: 1px solid var(--line); border-radius: .5rem; margin: 1rem 0; padding: .6rem .9rem }
label { display: block; padding: .55rem 0 }
small { display: block; opacity: .7 }
input[type=text] { width: 100%; min-height: 2.9rem; padding: .5rem .7rem; font: inherit; border: 1px solid var(--line); border-radius: .5rem }
.answers { display: flex; gap: .8rem; margin-top: 1.2rem }
form + form { margin-top: 1.5rem }
button { flex: 1; min-height: 3.4rem; font: 600 1.05rem system-ui, sans-serif; color: #fff; border: 0; border-radius: .6rem; background: #1a7f37 }
button.deny { background: #b42318 }
@media (max-width: 22rem) { dl { grid-template-columns: 1fr } dd + dt { margin-top: .5rem } }
`

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/** Nothing is loaded and nothing runs; the form goes where the page came from. */
export const ANSWER_PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow, noarchive',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

/** The page of a link that leads to something. */
export const answerPage = (view: AnswerView, words?: readonly string[]): string =>
  view.state === 'open' ? openPage(view) : messagePage('Answered already', settledText(view.resolved), words)

export const takenPage = (answer: ResolvePermissionRequest): string =>
  messagePage(headlineOf(answer), 'Your answer was the first, and was taken. You may close this page.')

function headlineOf(answer: ResolvePermissionRequest): string {
  if (answer.behavior === 'deny') return 'Denied'
  // by a link nothing but answers to questions goes into an input
  return answer.updatedInput ? 'Answered' : 'Allowed'
}

/**
 * A page of a headline and a sentence.
 * @param words what somebody has written who was not first: the way back leads to an empty form
 */
export function messagePage(headline: string, text: string, words: readonly string[] = []): string {
  const written = words.map((one) => `<pre>${html(one)}</pre>`).join('<br>')
  const kept = written && `<h2>What you have written, to be copied</h2>${written}`
  return page(headline, `<h1>${html(headline)}</h1><p>${html(text)}</p>${kept}`)
}

function openPage({ request, session, recipient, expiresAt, input, isWhole, canAllow }: OpenRequest): string {
  const questions = questionsOf(request)
  const headline = questions.length > 0 ? 'The agent asks you' : (request.title ?? `${request.toolName} asks to run`)
  const facts: [string, string | undefined][] = [
    ['Session', session.title],
    ['Profile', session.profile],
    ['Directory', session.cwd],
    ['Tool', request.toolName],
    ['Agent', request.agentId],
    ['What it does', request.description],
    ['Why it asks', request.decisionReason],
    ['Asked', recipient],
    ['Until', `${new Date(expiresAt).toISOString().slice(0, 16).replace('T', ' ')} UTC`],
  ]
  const rows = facts.map(([name, value]) => (value ? `<dt>${name}</dt><dd>${html(value)}</dd>` : '')).join('')
  const cut = isWhole ? '' : '<p>The input is longer than this page shows, so it can only be denied here.</p>'
  const what =
    questions.length > 0 ? '' : `${isWhole ? members(request.input) : `<h2>Input</h2><pre>${html(input)}</pre>`}${cut}`
  return page(headline, `<h1>${html(headline)}</h1><dl>${rows}</dl>${what}${form(questions, canAllow)}`)
}

/** What a tool is to be given: text as it is written, line by line, everything else as JSON. */
const members = (input: Record<string, unknown>): string =>
  Object.entries(input)
    .map(([name, value]) => {
      const text = typeof value === 'string' && value !== '' ? value : JSON.stringify(value, null, 2)
      return `<h2>${html(name)}</h2><pre>${html(text)}</pre>`
    })
    .join('')

/** The enter key presses the first button of a form: it never allows a tool, answers in a question, and denies where a reason is written. */
function form(questions: readonly Question[], canAllow: boolean): string {
  const deny = '<button class="deny" name="behavior" value="deny">Deny</button>'
  const allow = `<button name="behavior" value="allow">${questions.length > 0 ? 'Answer' : 'Allow'}</button>`
  const reason = `<label>If you deny it: what to do instead <input type="text" name="message" maxlength="${MAX_WRITTEN}" autocomplete="off"></label>`
  if (!canAllow) return formOf(reason, deny)
  if (questions.length === 0) return formOf(reason, deny + allow)
  return formOf(questions.map(fieldset).join(''), allow) + formOf(reason, deny)
}

const formOf = (fields: string, buttons: string): string =>
  `<form method="post">${fields}<div class="answers">${buttons}</div></form>`

function fieldset({ question, header, options, multiSelect }: Question, index: number): string {
  const { chosen, written } = fieldsOf(index)
  const type = multiSelect ? 'checkbox' : 'radio'
  const choices = options.map(
    ({ label, description }) =>
      `<label><input type="${type}" name="${chosen}" value="${escaped(label)}"> ${html(label)}${description ? `<small>${html(description)}</small>` : ''}</label>`,
  )
  const other = `<label>${options.length > 0 ? 'Something else' : 'Your answer'} <input type="text" name="${written}" maxlength="${MAX_WRITTEN}" autocomplete="off"></label>`
  return `<fieldset><legend>${html(header ? `${header}: ${question}` : question)}</legend>${choices.join('')}${other}</fieldset>`
}

/** Nobody knows who holds a link: as a rule it is whoever pressed twice, or has loaded the page again. */
const settledText = (resolved: Resolved | undefined): string =>
  resolved?.by?.channel === 'link'
    ? `It was ${DONE[resolved.behavior]} by this link, or one like it. If that was you, your answer was taken.`
    : whoWasFirst(resolved)

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">
<title>${html(title)}</title><style>${STYLE}</style></head>
<body><main>${body}</main></body></html>
`
}

/** What comes back with the form is not for eyes alone: that is escaped as it is. */
const html = (text: string): string => escaped(shown(text))
