import type { CustomerTextChanges } from '../customer-texts.js';
import { es } from '../es.js';

const s = (count: number) => (count === 1 ? '' : 's');
const stamps = es.stamps.count;

/** Where customers are addressed as "tú". Everything else addresses nobody. */
export const esInformal: CustomerTextChanges = {
  card: {
    full: (text, cards) =>
      cards === 1 ? 'Tu tarjeta está completa' : `${text} tarjetas completas`,
    rewardReady: 'Tu premio está listo',
    rewardsReady: 'Tus premios están listos',
    howToRedeem: 'Muestra el código en caja y di qué te apetece.',
    enjoy: '¡Que lo disfrutes!',
    joined: 'Te damos la bienvenida.',
    joinedWhy:
      'Te hemos enviado un enlace a tu tarjeta. ¿Ya tenías sellos aquí? Muestra este código de todos modos: en caja encuentran tus sellos.',
    joinedWithoutLink:
      'No podemos enviarte un enlace a esta tarjeta: añádela a tu wallet o guarda esta página. ¿Ya tenías sellos aquí? Muestra este código de todos modos: en caja encuentran tus sellos.',
    showCode: 'Muestra este código en caja',
    expired: (day) => `Esta tarjeta caducó el ${day}. Pide una nueva en caja.`,
    onYourPhone: 'En tu teléfono',
    notificationsFailed: 'No se pudieron activar las notificaciones. Inténtalo más tarde.',
    installByHand:
      'Para tener la tarjeta a mano: toca «Compartir» y luego «Añadir a pantalla de inicio».',
    notFoundWhy:
      'Puede que el enlace esté incompleto o que la tarjeta se haya eliminado. Abre de nuevo el enlace de tu mensaje, o escanea el cartel en la tienda para obtener una tarjeta nueva.',
  },
  notice: {
    toReward: (text, count, reward) =>
      `${count === 1 ? 'Falta' : 'Faltan'} ${stamps(text, count)} para tu premio: ${reward}.`,
    unlocked: (reward) => `Tu premio está listo: ${reward}.`,
    redeemed: (reward) => `Premio canjeado: ${reward}. ¡Que lo disfrutes!`,
  },
  applePass: {
    balance: (text, count) => `Tienes ${stamps(text, count)}.`,
    available: 'listo para ti',
  },
  googlePass: {
    ready: 'Disponible para ti',
  },
  cardMessage: {
    subject: (store) => `Tu tarjeta de sellos de ${store}`,
    intro: (store) => `Aquí tienes tu tarjeta de sellos de ${store}.`,
    advice:
      'Ábrela en tu teléfono para añadirla a Apple Wallet o Google Wallet, o úsala directamente en el navegador. No compartas el enlace: quien lo tenga puede mostrar tu tarjeta.',
    why: (store) =>
      `Recibes este correo porque alguien indicó tu dirección para una tarjeta de sellos de ${store}. Si no fuiste tú, no tienes que hacer nada.`,
    sms: (store, link) => `Tu tarjeta de sellos de ${store}: ${link}`,
  },
  holderMessages: {
    open: 'Abrir tu tarjeta',
    why: (store) => `Recibes este mensaje porque tienes una tarjeta de ${store}.`,
    page: {
      on: 'La tienda puede escribirte: en la tarjeta de tu Wallet, en este navegador y, si lo aceptaste, por correo o SMS.',
      off: 'Ya no recibes mensajes de esta tienda. Tu tarjeta y tus sellos siguen igual.',
    },
  },
  signup: {
    intro: (card) => `Lleva «${card}» en tu teléfono, sin aplicación.`,
    welcome: (text, count) => `Comienzas con ${stamps(text, count)}.`,
    preview: (card) => `Tu tarjeta «${card}»`,
    already: 'Ya tienes esta tarjeta',
    leaveEmpty: 'Deja este campo vacío',
    fieldErrors: {
      nameMissing: 'Escribe tu nombre.',
      nameUnfit: 'Escribe un nombre sin enlaces ni direcciones.',
      emailMissing: 'Escribe tu correo electrónico.',
      emailUnfit: 'Escribe una dirección completa, como anna@example.com.',
      phoneMissing: 'Escribe tu número de teléfono.',
      phoneUnfit: 'Este número no puede ser correcto. Revisa las cifras.',
      phoneWithoutCountry: 'Empieza por el prefijo del país, como +34.',
      birthdayMissing: 'Escribe tu fecha de nacimiento.',
      birthdayUnfit: 'Escribe el día, el mes y el año en cifras, como 31, 5 y 1990.',
      birthdayFuture: 'Ese día aún no ha llegado. Revisa el año.',
    },
    formErrors: {
      marked: 'Revisa los campos marcados en rojo.',
      contactMissing: 'Escribe un correo electrónico o un número de teléfono.',
      textsChanged: 'Los textos junto a las casillas acaban de cambiar. Léelos de nuevo.',
      filledTrap: 'Envía el formulario de nuevo y deja vacío el campo del final.',
      stale: 'La página era demasiado antigua. Envía el formulario otra vez.',
    },
    tooMany: (minutes, count) =>
      `Ahora mismo se está registrando mucha gente. Inténtalo de nuevo en ${minutes} minuto${s(count)}.`,
    elsewhereWhy: 'Por tu seguridad no se ha aceptado. Escanea de nuevo el código del cartel.',
    goneWhy: 'También puede que el enlace esté incompleto. Pide uno nuevo en la tienda.',
    closedWhy: 'Pregunta en la tienda. Las tarjetas ya entregadas siguen igual.',
  },
  poster: {
    collect: (text, count) => `Reúne ${stamps(text, count)}`,
    scan: 'Escanea y consigue tu tarjeta',
  },
};
