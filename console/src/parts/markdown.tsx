import { type MarkedToken, marked, type Token, type Tokens } from 'marked'
import type { ComponentChildren } from 'preact'
import { withCharacters } from '../model/entities.js'
import { safeLink } from '../model/links.js'
import { visible } from '../model/visible.js'
import { Code } from './code.js'
import { memo } from './memo.js'
import { useReached } from './scrolling.js'
import { Text } from './untrusted.js'

/** What is longer is shown as it is: nobody reads it for its headings, and parsing it would be felt. */
const MAX_CHARS = 20_000
const MAX_DEPTH = 12

/**
 * Markdown as elements, made one by one from its tokens: no HTML comes of it, and HTML in it is text. Nothing is loaded: an image is a
 * link to it.
 */
export const Markdown = memo(({ text }: { text: string }) => {
  const tokens = text.length > MAX_CHARS ? undefined : tokensOf(text)
  if (!tokens) return <Text text={text} class="prose-text" first={MAX_CHARS} />
  return (
    <div class="prose" dir="auto">
      {blocks(tokens, 0)}
    </div>
  )
})

function tokensOf(text: string): Token[] | undefined {
  try {
    return marked.lexer(text, { gfm: true })
  } catch {
    // nested too deep
    return undefined
  }
}

const blocks = (tokens: readonly Token[], depth: number): ComponentChildren =>
  tokens.map((token) => block(token as MarkedToken, depth))

function block(token: MarkedToken, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return <p>{visible(token.raw)}</p>
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading':
      // drawn as one; an agent's are none of the page's own
      return (
        <p class={`heading heading-${token.depth}`} dir="auto">
          {inlines(token.tokens, depth)}
        </p>
      )
    case 'paragraph':
      return <p dir="auto">{inlines(token.tokens, depth)}</p>
    case 'text':
      return token.tokens ? inlines(token.tokens, depth) : visible(withCharacters(token.text))
    case 'code':
      return <Code text={token.text} language={token.lang} />
    case 'blockquote':
      return <blockquote dir="auto">{blocks(token.tokens, depth + 1)}</blockquote>
    case 'list': {
      const items = token.items.map((item) => <li dir="auto">{blocks(item.tokens, depth + 1)}</li>)
      return token.ordered ? <ol start={token.start === '' ? 1 : token.start}>{items}</ol> : <ul>{items}</ul>
    }
    case 'table':
      return <Table token={token} depth={depth} />
    case 'hr':
      return <hr />
    case 'checkbox':
      return inline(token, depth)
    default:
      return <p>{visible(token.raw)}</p>
  }
}

function Table({ token, depth }: { token: Tokens.Table; depth: number }) {
  return (
    <div class="scroll-x" ref={useReached<HTMLDivElement>()}>
      <table>
        <thead>
          <tr>
            {token.header.map((cell) => (
              <th scope="col">{inlines(cell.tokens, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td>{inlines(cell.tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const inlines = (tokens: readonly Token[] | undefined, depth: number): ComponentChildren =>
  tokens?.map((token) => inline(token as MarkedToken, depth + 1))

function inline(token: MarkedToken, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return visible(token.raw)
  switch (token.type) {
    case 'text':
      return token.tokens ? inlines(token.tokens, depth) : visible(withCharacters(token.text))
    case 'escape':
      return visible(token.text)
    case 'strong':
      return <strong>{inlines(token.tokens, depth)}</strong>
    case 'em':
      return <em>{inlines(token.tokens, depth)}</em>
    case 'del':
      return <del>{inlines(token.tokens, depth)}</del>
    case 'codespan':
      return <code dir="auto">{visible(token.text)}</code>
    case 'br':
      return <br />
    case 'link':
      return <Link address={withCharacters(token.href)}>{inlines(token.tokens, depth)}</Link>
    // within a paragraph where lines lie between the tasks
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ '
    case 'image':
      return <Link address={withCharacters(token.href)}>{visible(withCharacters(token.text || token.href))}</Link>
    default:
      return visible(token.raw)
  }
}

/** Says where it leads, whatever its text says. */
function Link({ address, children }: { address: string; children: ComponentChildren }) {
  const link = safeLink(address)
  if (!link)
    return (
      <>
        {children}
        <bdi class="link-target"> [{visible(address.slice(0, 300))}]</bdi>
      </>
    )
  return (
    <a href={link.href} target="_blank" rel="noopener noreferrer nofollow ugc">
      <bdi>{children}</bdi>
      <bdi class="link-target"> ({visible(link.target)})</bdi>
    </a>
  )
}
