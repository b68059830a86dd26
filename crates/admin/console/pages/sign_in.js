// Sign-in by name and password. The link of `creole console` needs no page.
import { h, fill } from '../dom.js';
import { signIn } from '../api.js';
import { failure, labelled, logo } from '../widgets.js';

/** What to say about the end of a session. @param {any} problem */
function reason(problem) {
  switch (problem.code) {
    case 'link-used': return ['This link was used', 'Each link works once, for ten minutes. Run `creole console` again for a new one.'];
    case 'signed-out': return ['You signed out', 'Nothing of the session is kept in this browser.'];
    case 'session-ended': case 'unauthenticated': return ['You are signed out', 'The session ended. Sign in again; the page that you were on opens again.'];
    default: return null;
  }
}

/** @param {any} problem @param {() => void} done */
export function signInPage(problem, done) {
  const user = h('input', { type: 'text', name: 'user', autocomplete: 'username', spellcheck: 'false' });
  const password = h('input', { type: 'password', name: 'password', autocomplete: 'current-password' });
  const submit = h('button', { type: 'submit', class: 'primary' }, 'Sign in');
  const trouble = h('div', { 'aria-live': 'polite' });
  const known = problem && reason(problem);
  if (known) fill(trouble, h('div', { class: 'notice warn' }, h('p', { class: 'notice-title' }, known[0]), h('p', null, known[1])));
  else if (problem) fill(trouble, failure(problem));
  const send = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await signIn({ user: user.value, password: password.value });
      done();
    } catch (error) {
      const isWrong = /** @type {any} */ (error).code === 'wrong-password';
      fill(trouble, isWrong ? h('div', { class: 'notice bad', role: 'alert' }, h('p', { class: 'notice-title' }, 'The name or the password is wrong'), h('p', null, 'Names are in the file of [admin] users. `creole passwd` sets a password.')) : failure(error));
      password.value = '';
      password.focus();
    }
    submit.disabled = false;
  };
  queueMicrotask(() => user.focus());
  return h('main', { class: 'sign-in' }, h('h1', { class: 'brand' }, logo(), 'Creole console'), trouble,
    h('div', { class: 'panel' }, h('form', { on: { submit: send } }, labelled('Name', user), labelled('Password', password), h('div', { class: 'actions' }, submit))),
    h('p', { class: 'muted' }, 'No users are configured? Run ', h('code', null, 'creole console'), ' where the server runs: it prints a link that signs you in.'));
}
