import { Parser } from 'htmlparser2';
const SKIPPED = new Set([
    'script',
    'style',
    'noscript',
    'template',
    'svg',
    'iframe',
    'object',
    'canvas',
    'select',
    'nav',
]);
const PARAGRAPHS = new Set(['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'dl', 'table', 'blockquote', 'pre', 'figure', 'section'].concat(['article', 'header', 'footer', 'main', 'aside', 'form', 'hr', 'title']));
const LINES = new Set(['div', 'li', 'tr', 'dt', 'dd', 'br', 'option', 'figcaption', 'address', 'caption']);
/** The parser's time per element grows with the depth, so a page that nests deeper is read up to there. */
const MAX_DEPTH = 512;
/**
 * The words of a page: one line for each block, an empty one between paragraphs, links with where they lead. Scripts, styles and
 * navigation are left out. Takes time in proportion to the page, whatever the page.
 * @param base what relative links start from
 */
export function htmlToText(html, base) {
    const page = new PageText(base);
    let depth = 0;
    const parser = new Parser({
        onopentag(name, attributes) {
            depth += 1;
            if (depth > MAX_DEPTH)
                parser.pause();
            else
                page.open(name, attributes);
        },
        ontext: (words) => page.say(words),
        onclosetag(name) {
            depth -= 1;
            page.close(name);
        },
    });
    parser.write(html);
    if (depth <= MAX_DEPTH)
        parser.end();
    return page.toString();
}
class PageText {
    #base;
    #pieces = [];
    #last = '\n';
    #skipping = 0;
    #preformatted = 0;
    #links = [];
    constructor(base) {
        this.#base = base;
    }
    open(name, { href, alt }) {
        if (SKIPPED.has(name))
            this.#skipping += 1;
        if (this.#skipping > 0)
            return;
        this.#break(name);
        if (name === 'li')
            this.#add('- ');
        if (name === 'td' || name === 'th')
            this.#add(' ');
        if (name === 'pre')
            this.#preformatted += 1;
        if (name === 'img' && alt)
            this.say(alt);
        if (name === 'a')
            this.#links.push(href && URL.canParse(href, this.#base.href) ? new URL(href, this.#base).href : '');
    }
    close(name) {
        if (SKIPPED.has(name))
            this.#skipping = Math.max(0, this.#skipping - 1);
        if (this.#skipping > 0)
            return;
        const link = name === 'a' ? this.#links.pop() : undefined;
        if (link && /^https?:/.test(link))
            this.#add(` (${link})`);
        if (name === 'pre')
            this.#preformatted -= 1;
        this.#break(name);
    }
    say(words) {
        if (this.#skipping === 0)
            this.#add(this.#preformatted > 0 ? words : words.replace(/\s+/g, ' '));
    }
    toString() {
        const lines = [];
        for (const line of this.#pieces.join('').split('\n')) {
            const trimmed = line.trimEnd();
            if (trimmed !== '' || (lines.length > 0 && lines.at(-1) !== ''))
                lines.push(trimmed);
        }
        return lines.join('\n').trimEnd();
    }
    #break(name) {
        if (PARAGRAPHS.has(name))
            this.#add('\n\n');
        else if (LINES.has(name) && this.#last !== '\n')
            this.#add('\n');
    }
    #add(words) {
        const fitting = words.startsWith(' ') && /\s/.test(this.#last) && this.#preformatted === 0 ? words.slice(1) : words;
        if (fitting === '')
            return;
        this.#pieces.push(fitting);
        this.#last = fitting.at(-1);
    }
}
//# sourceMappingURL=html-text.js.map