import { execFileSync } from 'node:child_process';
import { chromium } from 'playwright-core';
import { CHROMIUM_FLAGS, chromiumPath } from '../test/fixtures/runtimes.js';
import { format, interleave, line, MB, median, verdict } from './lib/figures.js';
import { ServerProcess } from './lib/server-process.js';
const EVENTS = 100_000;
const ROUNDS = 3;
const VISITS = 50;
const WHEELS = 40;
const TARGETS = { openMs: 1_500, taskMs: 100, heapMb: 60, firstMs: 1_000 };
/** What a long transcript costs a browser, beside a page that has the same log as text in one `<pre>`. */
export async function consoleInBrowser() {
    if (!chromiumPath) {
        console.log('console: Chromium is not installed');
        return;
    }
    execFileSync('npm', ['run', 'build:console', '--silent'], { stdio: 'inherit' });
    const server = await ServerProcess.start('servers/console.js');
    const browser = await chromium.launch({ executablePath: chromiumPath, args: CHROMIUM_FLAGS });
    try {
        const url = await server.call('url');
        const id = await server.call('session', EVENTS);
        const [ours, bare] = [[], []];
        const opened = await interleave(ROUNDS, async () => keep(ours, await transcript(browser, url, id)), async () => keep(bare, await plain(browser, url, id)));
        const of = (all, name) => all.slice(1).map((figures) => figures[name]);
        console.log(`${line(`console: a transcript of ${EVENTS} events opens, beside the same in a <pre>`, opened, 'ms')}`);
        console.log(`  opens in ${format(median(opened.ours))} ms${verdict(median(opened.ours), TARGETS.openMs, 'ms')}`);
        for (const [name, what, unit, target] of [
            ['openCpuMs', 'CPU of the page while it opens', 'ms', undefined],
            ['heapMb', 'heap', 'MB', TARGETS.heapMb],
            ['longestCpuMs', 'longest task while it scrolls, CPU', 'ms', TARGETS.taskMs],
            ['longestMs', 'longest task while it scrolls, by the clock', 'ms', undefined],
        ]) {
            const figure = median(of(ours, name));
            console.log(`${line(`console: ${what}`, { ours: of(ours, name), baseline: of(bare, name) }, unit)}`);
            if (target !== undefined)
                console.log(`  ${what} ${format(figure)} ${unit}${verdict(figure, target, unit)}`);
        }
        await visits(browser, server, url);
        const first = await interleave(ROUNDS, () => firstSession(browser, `${url}/v1/console/#/sessions`, '.session-row'), () => firstSession(browser, `${url}/bare`, 'pre:not(:empty)'));
        console.log(line('console: from nothing to the first session, beside a page that prints the list', first, 'ms'));
        console.log(`  visible in ${format(median(first.ours))} ms${verdict(median(first.ours), TARGETS.firstMs, 'ms')}`);
    }
    finally {
        await browser.close();
        await server.stop();
    }
}
function keep(all, figures) {
    all.push(figures);
    return figures.openMs;
}
async function transcript(browser, url, id) {
    return inPage(browser, async (page) => {
        await page.goto(`${url}/v1/console/#/sessions/${id}`);
        await page
            .getByRole('log')
            .getByText(`That was step ${EVENTS - 2}`)
            .or(page.getByText(`Step ${EVENTS - 1}`))
            .first()
            .waitFor();
        return '.scroller';
    });
}
const BARE = '<!doctype html><style>pre{white-space:pre-wrap}</style><pre></pre>';
const barePage = (page) => page.route('**/bare', (route) => route.fulfill({ contentType: 'text/html', body: BARE }));
async function plain(browser, url, id) {
    return inPage(browser, async (page) => {
        await barePage(page);
        await page.goto(`${url}/bare`);
        await page.evaluate(async (events) => {
            const { document } = globalThis;
            let text = '';
            for (let after = 0;;) {
                const page = (await (await fetch(`${events}?afterSeq=${after}`)).json());
                for (const event of page.events)
                    text += `${JSON.stringify(event)}\n`;
                after = page.nextAfterSeq;
                if (after >= page.lastSeq)
                    break;
            }
            document.querySelector('pre').textContent = text;
            document.querySelector('pre').getBoundingClientRect();
        }, `${url}/v1/sessions/${id}/events`);
        return 'html';
    });
}
/** How long it takes until something is there, in a browser that knows nothing yet. */
async function firstSession(browser, address, selector) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await barePage(page);
    const start = performance.now();
    await page.goto(address);
    if (address.endsWith('/bare'))
        await page.evaluate(async () => {
            const { document } = globalThis;
            document.querySelector('pre').textContent = await (await fetch('/v1/sessions?limit=100')).text();
        });
    await page.locator(selector).first().waitFor();
    const ms = performance.now() - start;
    await context.close();
    return ms;
}
/** @param open opens what is to be measured. @returns by it: what scrolls */
async function inPage(browser, open) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    const start = performance.now();
    let openMs = 0;
    let scroller = '';
    const opening = await tasksOf(session, async () => {
        scroller = await open(page);
        openMs = performance.now() - start;
    });
    const scrolling = await tasksOf(session, async () => {
        for (let wheel = 0; wheel < WHEELS; wheel++)
            await page.evaluate(async (selector) => {
                const { document, requestAnimationFrame } = globalThis;
                document.querySelector(selector).scrollBy(0, -1_200);
                await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())));
            }, scroller);
    });
    const heapMb = await heapOf(session);
    await context.close();
    return {
        openMs,
        openCpuMs: opening.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
        heapMb,
        longestMs: Math.max(0, ...scrolling.map(({ ms }) => ms)),
        longestCpuMs: Math.max(0, ...scrolling.map(({ cpuMs }) => cpuMs)),
    };
}
/** The tasks of the page's main thread while something happens: how long each took, and how much of that its thread ran. */
async function tasksOf(session, act) {
    const events = [];
    const onData = ({ value }) => {
        for (const event of value)
            events.push(event);
    };
    session.on('Tracing.dataCollected', onData);
    await session.send('Tracing.start', {
        transferMode: 'ReportEvents',
        traceConfig: { includedCategories: ['toplevel'], excludedCategories: ['*'] },
    });
    await act();
    const isOver = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
    await session.send('Tracing.end');
    await isOver;
    session.off('Tracing.dataCollected', onData);
    const placeOf = ({ pid, tid }) => `${pid} ${tid}`;
    const mains = new Set(events
        .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
        .map((event) => placeOf(event)));
    return events
        .filter((event) => event.ph === 'X' && event.name === TASK && mains.has(placeOf(event)))
        .map(({ dur = 0, tdur = 0 }) => ({ ms: dur / 1000, cpuMs: tdur / 1000 }));
}
/** What Chromium calls one turn of a thread's loop. */
const TASK = 'ThreadControllerImpl::RunTask';
async function heapOf(session) {
    await session.send('HeapProfiler.enable');
    await session.send('HeapProfiler.collectGarbage');
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    return usedSize / MB;
}
/** Whether what was visited is let go. */
async function visits(browser, server, url) {
    const ids = [];
    for (let n = 0; n < VISITS; n++)
        ids.push(await server.call('session', 2_000));
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await page.goto(`${url}/v1/console/#/sessions`);
    const heaps = [];
    for (const id of ids) {
        await page.evaluate((hash) => {
            ;
            globalThis.location.hash = hash;
        }, `#/sessions/${id}`);
        await page.getByRole('log').getByText('The next one follows').last().waitFor();
        await page.evaluate(() => {
            ;
            globalThis.location.hash = '#/sessions';
        });
        await page.getByRole('list', { name: /Sessions/ }).waitFor();
        heaps.push(await heapOf(session));
    }
    await context.close();
    const [early, late] = [heaps.slice(5, 10), heaps.slice(-5)];
    console.log(line(`console: heap after ${VISITS} sessions visited, beside after 10`, { ours: late, baseline: early }, 'MB', 1.2));
}
//# sourceMappingURL=console.js.map