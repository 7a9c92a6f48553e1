/** The first page of a store. */
export const overview = {
  today: 'Today',
  allNumbers: 'All numbers',
  waiting: 'Waiting for you',
  /** @param count of messages to customers that were not sent */
  messages: (text: string, count: number) =>
    `${text} ${count === 1 ? 'message was' : 'messages were'} not sent`,
  messagesWhy: 'Links to cards that did not reach customers',
  rewards: (text: string, count: number) =>
    `${text} ${count === 1 ? 'reward is' : 'rewards are'} ready to redeem`,
  rewardsWhy: 'Customers can ask for them at any time',
  imports: (text: string, count: number) =>
    `${text} ${count === 1 ? 'import is' : 'imports are'} ready to start`,
  importsWhy: 'Checked, but not imported yet',
  setUp: 'Set up your store',
  /** @param done how many of the steps are done */
  progress: (done: string, all: string) => `${done} of ${all} done`,
  done: 'Done',
  steps: {
    card: {
      title: 'Create your first card',
      text: 'Choose colours, stamps and what they are for.',
    },
    reward: { title: 'Add a reward', text: 'What customers get for their stamps.' },
    logo: { title: 'Add your logo', text: 'It appears on cards, posters and e-mails.' },
    location: { title: 'Add your first location', text: 'Phones show the card when it is near.' },
    poster: { title: 'Print a poster', text: 'Customers scan it and get the card on their phone.' },
    team: { title: 'Invite your team', text: 'Everyone signs in as themselves.' },
    customer: {
      title: 'Welcome your first customer',
      text: 'By the poster, at the counter, or by importing a file.',
    },
  },
  go: 'Go',
  operator: 'What the person who runs this service can add',
  operatorWhy: 'You cannot do this yourself. Ask whoever runs Inkpad for you.',
  services: {
    mail: 'E-mails: links to cards and new passwords are sent by e-mail',
    sms: 'Text messages: links to cards are sent by text message',
    apple: 'Apple Wallet: cards can be added to iPhones',
    google: 'Google Wallet: cards can be added to Android phones',
  },
  serviceMissing: 'Not set up',
  pages: 'All pages',
  empty: 'Nothing to manage here',
  emptyWhy: 'Ask an owner of the store to give you more rights.',
};
