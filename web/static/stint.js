// Stint's own script. Everything here is a convenience: pages read and act without it.
// No inline handlers, no eval: what it does is bound to data-* attributes.
(() => {
  'use strict'
  const root = document.documentElement
  const $ = (sel, from = document) => from.querySelector(sel)
  const $$ = (sel, from = document) => [...from.querySelectorAll(sel)]
  const skew = Number(root.dataset.now || Date.now()) - Date.now() // server's clock minus ours, at load
  const now = () => Date.now() + skew
  const keep = (name, value) => { document.cookie = `stint_${name}=${value};path=/;max-age=31536000;samesite=lax` }
  keep('zone', encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone))

  // Controls that need scripts show themselves only where scripts run.
  const reveal = (from = document) => $$('.copy[hidden],#live[hidden],[data-log][hidden],[data-scripted][hidden]', from).forEach(e => { e.hidden = false })

  // Theme
  const setTheme = value => {
    root.dataset.theme = value
    keep('theme', value)
    $$('.theme button').forEach(b => b.setAttribute('aria-pressed', String(b.value === value)))
  }
  const nextTheme = () => {
    const order = ['auto', 'light', 'dark']
    setTheme(order[(order.indexOf(root.dataset.theme) + 1) % 3])
  }

  // One polite region, at most one message in five seconds; the last one wins.
  let said = 0, saying = null
  const announce = text => {
    clearTimeout(saying)
    saying = setTimeout(() => { said = Date.now(); $('#announce').textContent = text }, Math.max(50, said + 5000 - Date.now()))
  }

  // Live stream: state dot, pause, and the first connection, which the extension doesn't retry.
  const live = { connection: null, paused: false, out: false, tries: 0, timer: null, last: '' }
  const source = () => $('[hx-sse\\:connect]')
  const dot = (state, word) => {
    const el = $('#live')
    if (!el || (el.dataset.state === state && el.textContent === word)) return
    el.dataset.state = state
    el.lastElementChild.textContent = word
  }
  const connect = () => {
    clearTimeout(live.timer)
    const el = source()
    if (!el || live.paused || live.out || el._htmx?.sse) return
    const headers = live.last ? { 'Last-Event-ID': live.last } : {}
    htmx.ajax('GET', el.getAttribute('hx-sse:connect'), { source: el, headers })
  }
  const retry = () => {
    if (live.paused || live.out) return
    const wait = Math.min(30, 2 ** live.tries++)
    dot('wait', navigator.onLine ? `Reconnecting ${wait}s` : 'Offline')
    clearTimeout(live.timer)
    live.timer = setTimeout(connect, wait * 1000)
  }
  const signedOut = () => { live.out = true; clearTimeout(live.timer); dot('out', 'Signed out'); announce('Signed out') }
  const togglePause = () => {
    if (live.out || !source()) return
    live.paused = !live.paused
    if (live.paused) {
      dot('wait', 'Paused')
      live.connection?.reader?.cancel()
    } else {
      live.tries = 0
      dot('wait', 'Connecting')
      connect()
    }
  }
  document.addEventListener('htmx:sse:before:connection', e => {
    if (live.paused || live.out) e.detail.connection.cancelled = true
  })
  document.addEventListener('htmx:sse:after:connection', e => {
    live.connection = e.detail.connection
    if (live.last && !live.connection.lastEventId) live.connection.lastEventId = live.last
    live.tries = 0
    dot('live', 'Live')
  })
  document.addEventListener('htmx:sse:before:message', e => { if (e.detail.message.id) live.last = e.detail.message.id })
  document.addEventListener('htmx:sse:error', e => {
    if (e.detail.status === 401 || e.detail.status === 403) {
      signedOut()
      e.detail.connection.cancelled = true
      return
    }
    if (!live.paused) dot('wait', navigator.onLine ? 'Reconnecting' : 'Offline')
  })
  document.addEventListener('htmx:sse:close', () => { live.connection = null; if (!live.paused) retry() })
  const failed = e => {
    if (e.target !== source()) return
    const status = e.detail?.ctx?.response?.status
    if (status === 401 || status === 403) signedOut()
    else retry()
  }
  document.addEventListener('htmx:response:error', failed)
  document.addEventListener('htmx:error', failed)
  addEventListener('offline', () => { if (!live.paused) dot('wait', 'Offline') })
  addEventListener('online', () => { live.tries = 0; connect() })

  // After each update: what only scripts can use is shown, the window's title tells what waits, a new state is announced.
  let state = '', row = ''
  const settle = () => {
    reveal()
    const marked = row ? document.getElementById(row) : null
    marked?.classList.add('at')
    if (marked && document.activeElement === document.body && marked.closest('[data-board]')) $('a', marked)?.focus({ preventScroll: true })
    const n = parseInt($('#needs-count')?.textContent, 10) || 0
    let title = document.title.replace(/^\(\d+\) /, '')
    const now = $('#session-head .state')?.textContent.trim() || ''
    if (state && now && now !== state) {
      title = title.replace(` · ${state} · `, ` · ${now} · `)
      announce(`The session is now: ${now}`)
    }
    state = now
    title = n ? `(${n}) ${title}` : title
    if (title !== document.title) document.title = title
    renew()
  }
  document.addEventListener('htmx:after:swap', settle)

  // A form in which something was typed outlives what it belongs to: a live update that would take it away leaves it, and says so.
  const dirty = form => 'typed' in form.dataset || [...form.elements].some(f =>
    f.type === 'radio' || f.type === 'checkbox' ? f.checked !== f.defaultChecked : f.type !== 'hidden' && 'defaultValue' in f && f.value !== f.defaultValue)
  // The server was replaced by another version while this page was open: the page is loaded anew, once for each version and
  // not where that would lose something. Then it only says so.
  const renew = () => {
    const by = $('#renewal')?.dataset.renew
    if (!by || live.paused || $('dialog[open]') || $$('form').some(dirty)) return
    try {
      if (sessionStorage.getItem('stint_renewed') === by) return
      sessionStorage.setItem('stint_renewed', by)
    } catch { return }
    location.reload()
  }
  document.addEventListener('htmx:before:swap', e => {
    for (const task of e.detail.tasks || []) {
      const target = typeof task.target === 'string' ? $(task.target) : task.target
      if (!target) continue
      for (const form of $$('form[data-keep]', target)) {
        if (!dirty(form) || $('#' + CSS.escape(form.id), task.fragment)) continue
        const keeper = form.closest('li[data-keeper]') || form.closest('[data-keeper]')
        $$('[data-late]', keeper).forEach(n => { n.hidden = false })
        const home = $('#' + CSS.escape(keeper.parentElement.id), task.fragment) || task.fragment.firstElementChild
        keeper.setAttribute('hx-morph-skip', '') // so that its shell in what comes stands for all of it
        home?.prepend(keeper.cloneNode(false))
      }
    }
  })
  document.addEventListener('input', e => {
    const other = e.target.dataset?.picks && $(`[name="${CSS.escape(e.target.dataset.picks)}"][value=other]`, e.target.form)
    if (other) other.checked = true
  })

  // Countdowns and elapsed times
  const two = n => String(n).padStart(2, '0')
  const clock = ms => {
    const s = Math.max(0, Math.ceil(ms / 1000)), h = Math.floor(s / 3600)
    return h ? `${h}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`
  }
  const pair = (s, big, bigWord, small, smallWord) => {
    const rest = Math.floor(s % big / small)
    return Math.floor(s / big) + bigWord + (rest ? ` ${rest}${smallWord}` : '')
  }
  const span = ms => {
    const s = Math.max(0, Math.floor(ms / 1000))
    return s < 60 ? `${s}s` : s < 3600 ? pair(s, 60, 'm', 1, 's') : s < 86400 ? pair(s, 3600, 'h', 60, 'm') : pair(s, 86400, 'd', 3600, 'h')
  }
  const tick = () => {
    if (document.hidden) return
    const t = now()
    for (const el of $$('[data-lease]')) {
      const left = Math.max(0, Number(el.dataset.ends) - t)
      const share = Math.min(1, left / Number(el.dataset.length) || 0)
      el.classList.toggle('low', share < .2)
      $('.left', el).setAttribute('stroke-dasharray', `${(share * 100).toFixed(1)} 100`)
      const b = $('b', el)
      if (b) b.textContent = clock(left)
    }
    for (const el of $$('[data-since]')) el.textContent = span(t - Number(el.dataset.since))
    for (const el of $$('[data-until]')) el.textContent = clock(Number(el.dataset.until) - t)
  }
  setInterval(tick, 1000)

  // Log: follow while at the end, else count what came below
  const follow = view => {
    const log = view.closest('.log,.talk'), talk = log.matches('.talk'), more = $('[data-more]', log), button = $('[data-log=follow]', log)
    let on = button.getAttribute('aria-pressed') === 'true', fresh = 0
    // A page keeps some thousand lines; the rest is a click away.
    const list = $('.lines', view), most = 4000
    let held = talk ? -Infinity : list.querySelectorAll('p').length
    const trim = added => {
      held += added
      if (held <= most) return
      while (held > most * .75 && list.firstElementChild !== list.lastElementChild) {
        held -= list.firstElementChild.children.length
        list.firstElementChild.remove()
      }
      const link = $('#log-earlier') || Object.assign(document.createElement('a'), { id: 'log-earlier', className: 'btn quiet', textContent: 'Earlier output' })
      link.href = `?view=output&before=${parseInt(list.firstElementChild.id.slice(1), 10)}`
      view.prepend(link)
    }
    const atEnd = () => view.scrollHeight - view.scrollTop - view.clientHeight < 32
    const set = value => {
      on = value
      button.setAttribute('aria-pressed', String(value))
      if (value) { fresh = 0; more.hidden = true; view.scrollTop = view.scrollHeight }
    }
    // Only who scrolls up stops following; text that grows, as its font comes, doesn't.
    let top = 0
    view.addEventListener('scroll', () => {
      const up = view.scrollTop < top
      top = view.scrollTop
      if (atEnd()) { if (!on) set(true) } else if (on && up) set(false)
    }, { passive: true })
    // A question that stays in sight doesn't hide the end.
    const uncover = () => {
      const card = talk && $('#session-answer.sticky')
      const hidden = card ? view.getBoundingClientRect().bottom - card.getBoundingClientRect().top : 0
      const room = `${Math.max(0, Math.min(hidden, view.clientHeight - 80))}px`
      if (room === list.style.paddingBottom) return
      list.style.paddingBottom = room
      if (on) view.scrollTop = view.scrollHeight
    }
    if (talk) {
      addEventListener('scroll', uncover, { passive: true })
      addEventListener('resize', uncover, { passive: true })
      new ResizeObserver(uncover).observe(log.parentElement)
    }
    document.fonts.ready.then(() => { if (on && !location.hash) view.scrollTop = view.scrollHeight })
    button.addEventListener('click', () => set(!on))
    more.addEventListener('click', () => { set(true); view.focus() })
    new MutationObserver(changes => {
      const lines = talk ? changes.reduce((n, c) => n + (c.target === list ? c.addedNodes.length : 0), 0)
        : changes.reduce((n, c) => n + [...c.addedNodes].reduce((m, e) => m + (e.children?.length || 0), 0), 0)
      if (on) { trim(lines); view.scrollTop = view.scrollHeight; return }
      fresh += lines
      if (!fresh) return
      more.lastElementChild.textContent = talk ? `${fresh} new` : `${fresh} new ${fresh === 1 ? 'line' : 'lines'}`
      more.hidden = false
    }).observe(list, { childList: true, subtree: true })
    if (on && !location.hash) view.scrollTop = view.scrollHeight
  }
  const wrap = button => {
    const on = button.getAttribute('aria-pressed') !== 'true'
    button.setAttribute('aria-pressed', String(on))
    $('[data-view]').classList.toggle('nowrap', !on)
  }

  // Clicks
  const copy = async button => {
    const text = button.dataset.copy
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      const area = Object.assign(document.createElement('textarea'), { value: text, className: 'vh' })
      document.body.append(area)
      area.select()
      document.execCommand('copy')
      area.remove()
    }
    button.dataset.done = ''
    announce('Copied')
    setTimeout(() => delete button.dataset.done, 1500)
  }
  document.addEventListener('click', e => {
    if (e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return
    const hit = sel => e.target.closest?.(sel)
    let el
    if ((el = hit('.theme button'))) { e.preventDefault(); setTheme(el.value) }
    else if ((el = hit('[data-copy]'))) { e.preventDefault(); copy(el) }
    else if ((el = hit('[data-dialog]'))) { const d = document.getElementById(el.dataset.dialog); if (d) { e.preventDefault(); d === palette ? openPalette() : d.showModal() } }
    else if ((el = hit('dialog [data-close]'))) { e.preventDefault(); el.closest('dialog').close() }
    else if ((el = hit('#live'))) togglePause()
    else if (hit('[data-reload]')) location.reload()
    else if ((el = hit('[data-log=wrap]'))) wrap(el)
    else if ((el = hit('.lines p')) && e.target === el && el.parentElement.id) history.replaceState(null, '', '#' + el.parentElement.id)
    else if (e.target.nodeName === 'DIALOG') e.target.close()
  })
  document.addEventListener('change', e => {
    if (e.target.id === 'keys-on') { root.dataset.keys = e.target.checked ? 'on' : 'off'; keep('keys', root.dataset.keys) }
    if (e.target.matches?.('[data-submit]')) e.target.form.requestSubmit()
  })
  // A form is sent once.
  document.addEventListener('submit', e => {
    const b = e.submitter
    if (b?.ariaDisabled === 'true') { e.preventDefault(); return }
    if (b && e.target.method === 'post') { b.ariaDisabled = 'true'; setTimeout(() => { b.ariaDisabled = null }, 4000) }
  })

  // Keys: never inside a field, never with a modifier, never when switched off
  let lead = '', leadTimer
  const rows = () => $$('.rows > li, tr[data-row]').filter(r => r.offsetParent)
  const move = step => {
    const all = rows()
    if (!all.length) return
    const at = all.findIndex(r => r.classList.contains('at'))
    const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + step))]
    all[at]?.classList.remove('at')
    next.classList.add('at')
    row = next.id
    $('a', next)?.focus({ preventScroll: true })
    next.scrollIntoView({ block: 'nearest' })
  }

  // The palette: a search over everything, filled by the server while somebody types. Focus stays
  // in the field; the chosen option is the active descendant.
  const palette = $('#palette'), query = palette && $('input', palette), results = palette && $('#palette-list')
  let looked = 0, looking = null, moved = '' // the address of what was chosen by hand
  const choose = el => {
    $$('.opt', results).forEach(o => o.setAttribute('aria-selected', String(o === el)))
    if (el) query.setAttribute('aria-activedescendant', el.id)
    else query.removeAttribute('aria-activedescendant')
    el?.scrollIntoView({ block: 'nearest' })
  }
  const look = async () => {
    const mine = ++looked
    try {
      const res = await fetch(`${palette.dataset.palette}?q=${encodeURIComponent(query.value)}`)
      if (mine !== looked) return
      if (!res.ok) throw new Error(res.status)
      results.innerHTML = await res.text()
      choose($$('.opt', results).find(o => o.href === moved) || $('.opt', results))
    } catch {
      if (mine === looked) results.textContent = 'The search could not be loaded. Enter opens its page.'
    }
  }
  const openPalette = () => { if (!palette.open) palette.showModal(); moved = ''; query.select(); look() }
  query?.addEventListener('input', () => { moved = ''; clearTimeout(looking); looking = setTimeout(look, 80) })
  palette?.addEventListener('keydown', e => {
    const all = $$('.opt', results), at = all.findIndex(o => o.getAttribute('aria-selected') === 'true')
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    if (e.key === 'Escape') { e.preventDefault(); palette.close() }
    if (!step || !all.length) return
    e.preventDefault()
    const next = all[(at + step + all.length) % all.length]
    moved = next.href
    choose(next)
  })
  palette?.addEventListener('submit', e => {
    const chosen = $('.opt[aria-selected=true]', results)
    if (chosen) { e.preventDefault(); chosen.click() }
  })

  document.addEventListener('keydown', e => {
    const el = e.target
    if ((e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey && e.key.toLowerCase() === 'k' && palette && (palette.open || !$('dialog[open]'))) { e.preventDefault(); openPalette(); return }
    if ((e.ctrlKey || e.metaKey) && e.key === 'Enter' && el.form) { e.preventDefault(); el.form.requestSubmit(); return }
    if (e.ctrlKey || e.metaKey || e.altKey || root.dataset.keys === 'off') return
    if (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.nodeName) || $('dialog[open]')) return
    if (lead === 'g') {
      lead = ''
      const a = $(`[data-go="${CSS.escape(e.key)}"]`)
      if (a) { e.preventDefault(); a.click() }
      return
    }
    const act = {
      g: () => { lead = 'g'; clearTimeout(leadTimer); leadTimer = setTimeout(() => { lead = '' }, 1200) },
      j: () => move(1),
      k: () => move(-1),
      t: nextTheme,
      '.': togglePause,
      '?': () => $('#keys').showModal(),
      '/': () => { const el = $('main [type=search]'); el ? el.focus() : openPalette() },
      n: () => $('[data-key=n]')?.click(),
      '[': () => $('[data-board] .at [data-move="-1"]')?.click(),
      ']': () => $('[data-board] .at [data-move="1"]')?.click(),
    }[e.key] || ($(`[data-key="${CSS.escape(e.key)}"]`) && (() => $(`[data-key="${CSS.escape(e.key)}"]`).click()))
    if (act) { e.preventDefault(); act() }
  })

  // The board: a card moves by its buttons, by [ and ] or by being dragged. The live stream then shows where it is; without
  // one, the page is drawn anew.
  const toast = text => {
    const t = Object.assign(document.createElement('div'), { className: 'toast', textContent: text })
    $('#toasts').append(t)
    fade(t)
  }
  const moveCard = async (card, state) => {
    const form = $('.moves', card)
    if (!form || !state || card.classList.contains('moving')) return
    card.classList.add('moving')
    try {
      const res = await fetch(form.action, { method: 'POST', headers: { 'HX-Request': 'true' }, body: new URLSearchParams({ state }) })
      if (!res.ok) throw new Error(await res.text())
      announce(`${card.id.slice(5)} moved`)
      if (!live.connection) location.reload()
    } catch (e) {
      toast(e.message)
      announce(e.message)
    }
    card.classList.remove('moving')
  }
  document.addEventListener('submit', e => {
    if (!e.target.matches('.moves')) return
    e.preventDefault()
    moveCard(e.target.closest('li'), e.submitter?.value)
  })
  const cardAt = el => el.closest?.('[data-board] .rows > li')
  document.addEventListener('dragstart', e => {
    const card = cardAt(e.target)
    if (!card || !$('.moves', card)) return
    e.dataTransfer.setData('text/stint-card', card.id)
    e.dataTransfer.effectAllowed = 'move'
  })
  const columnUnder = e => e.dataTransfer?.types.includes('text/stint-card') && e.target.closest?.('[data-column]')
  const over = column => {
    $$('.column.over').forEach(c => c.classList.remove('over'))
    column?.classList.add('over')
  }
  document.addEventListener('dragover', e => { const c = columnUnder(e); over(c || null); if (c) e.preventDefault() })
  document.addEventListener('dragend', () => over(null))
  document.addEventListener('drop', e => {
    const c = columnUnder(e), card = c && document.getElementById(e.dataTransfer.getData('text/stint-card'))
    over(null)
    if (!card) return
    e.preventDefault()
    if (card.closest('[data-column]') !== c) moveCard(card, c.dataset.column)
  })

  const fade = t => setTimeout(() => { if (t.matches(':hover')) fade(t); else t.remove() }, 6000)
  const start = () => {
    reveal()
    $$('[data-view]').forEach(follow)
    $$('.tabs [aria-current]').forEach(t => { t.parentElement.scrollLeft = t.offsetLeft + t.offsetWidth - t.parentElement.clientWidth })
    $$('[data-toast]').forEach(fade)
    settle()
    if (source()) setTimeout(() => { if (!live.connection && !live.tries) connect() }, 3000)
  }
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start)
  else start()
})()
