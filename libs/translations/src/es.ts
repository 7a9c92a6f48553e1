import { cardPages } from './card-pages/es.js';
import { brand } from './brand/es.js';
import { console } from './console/es.js';
import { locationPages } from './location-pages/es.js';
import { posterConsole } from './poster-console/es.js';
import { customerPages } from './customer-pages/es.js';
import { webhookPages } from './webhook-pages/es.js';
import { numbers } from './numbers/es.js';
import { overview } from './overview/es.js';
import { transfers } from './transfer-pages/es.js';
import { counter } from './counter/es.js';
import { en, type Translations } from './en.js';
import { forms } from './forms/es.js';
import { holderMessages } from './holder-messages/es.js';
import { messagePages } from './message-pages/es.js';
import { outbox } from './outbox/es.js';
import { signIn } from './sign-in/es.js';

const s = (count: number) => (count === 1 ? '' : 's');
const stamps = (text: string, count: number) => `${text} sello${s(count)}`;

export const es: Translations = {
  stamps: {
    label: 'Sellos',
    count: stamps,
    added: (text, count) => `${stamps(text, count)} añadido${s(count)}`,
  },
  wallet: {
    rewards: 'Premios',
    reward: (name, text, count) => `${name}: ${stamps(text, count)}`,
    moreRewards: (text, count) => `Y ${text} premio${s(count)} más en la página de la tarjeta.`,
  },
  contact: {
    title: 'Contacto',
    website: 'Sitio web',
    phone: 'Teléfono',
    email: 'Correo electrónico',
    address: 'Dirección',
    terms: 'Condiciones',
  },
  card: {
    stampsOf: (have, need) => `${have} de ${need} sellos`,
    full: (text, cards) =>
      cards === 1 ? 'Su tarjeta está completa' : `${text} tarjetas completas`,
    surplus: (text, cards, have, need) =>
      `${text} tarjeta${s(cards)} completa${s(cards)} y ${have} de ${need}`,
    rewardReady: 'Su premio está listo',
    rewardsReady: 'Sus premios están listos',
    howToRedeem: 'Muestre el código en caja y diga qué le apetece.',
    uses: (text, count) => `usa ${stamps(text, count)}`,
    costs: stamps,
    enjoy: '¡Que lo disfrute!',
    redeemedNow: (reward) => `${reward}: canjeado ahora mismo.`,
    enlarge: 'Ampliar el código',
    close: 'Cerrar',
    notNow: 'Ahora no',
    about: (store) => `Tarjeta de sellos de ${store}`,
    joined: 'Le damos la bienvenida.',
    joinedWhy:
      'Le hemos enviado un enlace a su tarjeta. ¿Ya tenía sellos aquí? Muestre este código de todos modos: en caja encuentran sus sellos.',
    joinedWithoutLink:
      'No podemos enviarle un enlace a esta tarjeta: añádala a su wallet o guarde esta página. ¿Ya tenía sellos aquí? Muestre este código de todos modos: en caja encuentran sus sellos.',
    member: 'Titular',
    toReward: 'Próximo premio en',
    rewards: 'Premios',
    ready: 'Listo para canjear',
    toGo: (text, count) => `Falta${count === 1 ? '' : 'n'} ${stamps(text, count)}`,
    barcode: (code) => `Código de barras de la tarjeta ${code}`,
    qrCode: (code) => `Código QR de la tarjeta ${code}`,
    showCode: 'Muestre este código en caja',
    validUntil: (day) => `Válida hasta el ${day}`,
    expired: (day) => `Esta tarjeta caducó el ${day}. Pida una nueva en caja.`,
    onYourPhone: 'En su teléfono',
    addToApple: 'Añadir a Apple Wallet',
    addToGoogle: 'Añadir a Google Wallet',
    notifyMe: 'Avisarme de nuevos sellos',
    stopNotifying: 'No avisarme más',
    notificationsBlocked:
      'Las notificaciones de esta página están bloqueadas en los ajustes del navegador.',
    notificationsFailed: 'No se pudieron activar las notificaciones. Inténtelo más tarde.',
    install: 'Poner en la pantalla de inicio',
    installByHand:
      'Para tener la tarjeta a mano: toque «Compartir» y luego «Añadir a pantalla de inicio».',
    offline: (when) => `Sin conexión. La tarjeta a fecha de ${when}.`,
    notFound: 'Esta tarjeta no existe',
    notFoundWhy:
      'Puede que el enlace esté incompleto o que la tarjeta se haya eliminado. Abra de nuevo el enlace de su mensaje, o escanee el cartel en la tienda para obtener una tarjeta nueva.',
  },
  notice: {
    toReward: (text, count, reward) =>
      `${count === 1 ? 'Falta' : 'Faltan'} ${stamps(text, count)} para su premio: ${reward}.`,
    toFullCard: (text, count) =>
      `${count === 1 ? 'Falta' : 'Faltan'} ${stamps(text, count)} para completar la tarjeta.`,
    unlocked: (reward) => `Su premio está listo: ${reward}.`,
    redeemed: (reward) => `Premio canjeado: ${reward}. ¡Que lo disfrute!`,
  },
  applePass: {
    member: 'Socio',
    toReward: 'Faltan',
    store: 'Tienda',
    card: 'Tarjeta',
    openPage: 'Abrir la tarjeta en el navegador',
    news: 'Novedades',
    balance: (text, count) => `Tiene ${stamps(text, count)}.`,
    available: 'listo para usted',
    expires: 'Válida hasta',
    shops: 'Tiendas',
    void: 'Esta tarjeta ya no es válida.',
    description: (card, store) => `Tarjeta de sellos «${card}» de ${store}`,
  },
  googlePass: {
    member: 'Miembro',
    code: 'Código de la tarjeta',
    toReward: 'Hasta el premio',
    ready: 'Disponible para usted',
    unlocked: 'Premio conseguido',
    page: 'Tarjeta en el navegador',
  },
  cardMessage: {
    subject: (store) => `Su tarjeta de sellos de ${store}`,
    intro: (store) => `Aquí tiene su tarjeta de sellos de ${store}.`,
    open: 'Abrir mi tarjeta',
    advice:
      'Ábrala en su teléfono para añadirla a Apple Wallet o Google Wallet, o úsela directamente en el navegador. No comparta el enlace: quien lo tenga puede mostrar su tarjeta.',
    why: (store) =>
      `Recibe este correo porque alguien indicó su dirección para una tarjeta de sellos de ${store}. Si no fue usted, no tiene que hacer nada.`,
    sms: (store, link) => `Su tarjeta de sellos de ${store}: ${link}`,
  },
  // Not translated yet.
  failingMail: en.failingMail,
  retirementMail: en.retirementMail,
  signup: {
    intro: (card) => `Lleve «${card}» en su teléfono, sin aplicación.`,
    offer: (text, count) => `por ${stamps(text, count)}`,
    welcome: (text, count) => `Comienza con ${stamps(text, count)}.`,
    preview: (card) => `Su tarjeta «${card}»`,
    day: 'Día',
    month: 'Mes',
    year: 'Año',
    already: 'Ya tiene esta tarjeta',
    alreadyWhy: (card) => `Con este teléfono ya se obtuvo «${card}».`,
    openCard: 'Abrir mi tarjeta',
    someoneElse: 'Registrar a otra persona',
    firstName: 'Nombre',
    lastName: 'Apellidos',
    email: 'Correo electrónico',
    phone: 'Teléfono',
    birthday: 'Fecha de nacimiento',
    optional: 'opcional',
    eitherContact: 'Basta con un correo electrónico o un número de teléfono.',
    minimumAge: (years) => `La tarjeta es para personas de ${years} años o más.`,
    privacy: 'Política de privacidad',
    submit: 'Obtener la tarjeta',
    leaveEmpty: 'Deje este campo vacío',
    fieldErrors: {
      nameMissing: 'Escriba su nombre.',
      nameUnfit: 'Escriba un nombre sin enlaces ni direcciones.',
      emailMissing: 'Escriba su correo electrónico.',
      emailUnfit: 'Escriba una dirección completa, como anna@example.com.',
      phoneMissing: 'Escriba su número de teléfono.',
      phoneUnfit: 'Este número no puede ser correcto. Revise las cifras.',
      phoneWithoutCountry: 'Empiece por el prefijo del país, como +34.',
      birthdayMissing: 'Escriba su fecha de nacimiento.',
      birthdayUnfit: 'Escriba el día, el mes y el año en cifras, como 31, 5 y 1990.',
      birthdayFuture: 'Ese día aún no ha llegado. Revise el año.',
    },
    formErrors: {
      marked: 'Revise los campos marcados en rojo.',
      contactMissing: 'Escriba un correo electrónico o un número de teléfono.',
      textsChanged: 'Los textos junto a las casillas acaban de cambiar. Léalos de nuevo.',
      filledTrap: 'Envíe el formulario de nuevo y deje vacío el campo del final.',
      stale: 'La página era demasiado antigua. Envíe el formulario otra vez.',
    },
    tooMany: (minutes, count) =>
      `Ahora mismo se está registrando mucha gente. Inténtelo de nuevo en ${minutes} ${count === 1 ? 'minuto' : 'minutos'}.`,
    elsewhere: 'Este formulario venía de otro sitio',
    elsewhereWhy: 'Por su seguridad no se ha aceptado. Escanee de nuevo el código del cartel.',
    gone: 'Este cartel ya no es válido',
    goneWhy: 'También puede que el enlace esté incompleto. Pida uno nuevo en la tienda.',
    closed: 'Esta tarjeta no se entrega en este momento',
    closedWhy: 'Pregunte en la tienda. Las tarjetas ya entregadas siguen igual.',
  },
  poster: {
    stampCard: 'Tarjeta de sellos',
    offer: (text, count) => `por ${stamps(text, count)}`,
    collect: (text, count) => `Reúna ${stamps(text, count)}`,
    scan: 'Escanee y consiga su tarjeta',
    signUp: 'Conseguir mi tarjeta',
    download: 'Cartel para imprimir',
    otherSizes: 'Otros tamaños',
    paperSize: 'Papel',
    withBleed: 'PDF con sangrado y marcas de corte',
  },
  history: {
    issued: 'tarjeta emitida',
    welcome: (text, count) => `${stamps(text, count)} de bienvenida`,
    credited: (text, count) => `corrección: ${stamps(text, count)} añadido${s(count)}`,
    removed: (text, count) => `corrección: ${stamps(text, count)} retirado${s(count)}`,
    unlocked: (reward) => `premio «${reward}» conseguido`,
    redeemed: (reward, text, count) => `premio «${reward}» canjeado por ${stamps(text, count)}`,
    moved: 'tarjeta traspasada a otro cliente',
    merged: 'tarjeta fusionada con otra, que sigue en uso',
    absorbed: 'otra tarjeta fusionada con esta',
    unmerged: 'fusión de tarjetas deshecha',
    earlier: (text, count) => `${text} entrada${s(count)} anterior${count === 1 ? '' : 'es'}`,
    at: (location) => `en ${location}`,
    by: (who) => `por ${who}`,
    receipt: (number) => `recibo ${number}`,
    reverses: (when) => `anula la entrada del ${when}`,
    reversed: (when) => `anulado el ${when}`,
  },
  errorPage: {
    notFound: 'Esta página no existe',
    notFoundWhy: 'Puede que el enlace esté incompleto o que la página se haya eliminado.',
    forbidden: 'No tiene acceso a esta página',
    forbiddenWhy: 'Pregunte en la tienda.',
    tooMany: 'Demasiadas solicitudes',
    tooManyWhy: (wait) => `Inténtelo de nuevo en ${wait}.`,
    maintenance: 'Estamos haciendo tareas de mantenimiento',
    maintenanceWhy:
      'Durante un rato no se puede cambiar nada, pero todo se puede consultar. Inténtelo de nuevo más tarde.',
    unavailable: 'No disponible en este momento',
    unavailableWhy: 'Nada de lo guardado se ha perdido.',
    historyUnavailable: 'No se puede acceder al historial en este momento',
    historyUnavailableWhy:
      'Los sellos, los cambios y el historial tienen que esperar; todo lo demás se puede seguir consultando. Nada de lo guardado se ha perdido.',
    checkBeforeSending: 'Antes de volver a enviarlo, compruebe en un momento si se ha guardado.',
    tryAgain: 'Inténtelo de nuevo en un momento.',
    historyDamaged: 'El historial de este registro está dañado',
    historyDamagedWhy:
      'Este registro no se puede modificar, o no se puede consultar su pasado, hasta que quien gestiona el servicio lo repare. Repetirlo no ayuda. Todo lo demás sigue funcionando.',
    unsettled: 'No sabemos si se ha guardado',
    unsettledWhy: 'Vuelva atrás, recargue la página y compruébelo antes de repetirlo.',
    broken: 'Algo ha fallado aquí',
    brokenWhy: 'El error es nuestro y ha quedado anotado. Inténtelo de nuevo.',
    refused: 'No se ha podido hacer',
    refusedWhy: 'Vuelva atrás y revise lo que ha escrito.',
    requestNumber: (id) => `Solicitud ${id}`,
    start: 'Ir a la página de inicio',
    documentation: 'Ir a la documentación',
  },
  console,
  cardPages,
  locationPages,
  posterConsole,
  customerPages,
  webhookPages,
  numbers,
  overview,
  transfers,
  brand,
  forms,
  holderMessages,
  messagePages,
  outbox,
  signIn,
  counter,
};
